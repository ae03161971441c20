# ends: by itself
# Opens its streams again, to read its output or to truncate the stored output.
import os
from attack import breach, done, refused
for descriptor in (0, 1, 2):
    for name in ("/proc/self/fd", "/dev/fd"):
        try:
            again = os.open(f"{name}/{descriptor}", os.O_RDWR | os.O_NONBLOCK)
            refused("cutting", os.ftruncate, again, 0)
            refused("seeking", os.lseek, again, 0, 0)
        except OSError:
            pass
done()
