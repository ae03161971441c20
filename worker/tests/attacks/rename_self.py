# ends: by itself
# Takes the name of another process, with control characters for terminals.
import ctypes
from attack import done, libc
libc.prctl(15, ctypes.c_char_p(b"worker\n\x1b[2J"), 0, 0, 0)
done()
