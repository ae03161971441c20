# ends: by itself
# Makes the machine write to its disks repeatedly.
import ctypes, os
from attack import breach, done, libc, refused
# On an invalid file: an error comes from the kernel, so the filter let the call through.
for name in ("fsync", "fdatasync", "syncfs"):
    if getattr(libc, name)(-1) < 0:
        breach(name, "was let through")
if libc.sync_file_range(-1, ctypes.c_long(0), ctypes.c_long(0), 7) < 0:
    breach("sync_file_range was let through")
if libc.msync(ctypes.c_void_p(4096), ctypes.c_size_t(4096), 4) < 0:
    breach("msync was let through")
file = os.open("/usr/bin/env", os.O_RDONLY)
for _ in range(20000):
    os.fsync(file)
done()
