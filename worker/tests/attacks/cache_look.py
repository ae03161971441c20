# ends: by itself
# Asks which pages of a mapped shared file are in memory.
import ctypes, os
from attack import call, done, libc, refused
file = os.open("/usr/bin/env", os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
place = libc.mmap(None, 4096, 1, 1, file, 0)
found = ctypes.create_string_buffer(1)
refused("mincore", call, 27, place, 4096, ctypes.addressof(found))
done()
