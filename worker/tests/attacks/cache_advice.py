# ends: by itself
# Asks the kernel to page out, demote, collapse or merge pages that all bots share.
import ctypes, os
from attack import call, done, libc, refused
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
file = os.open("/usr/bin/env", os.O_RDONLY)
place = libc.mmap(None, 4096, 1, 1, file, 0)
for name, advice in (("cold", 20), ("page out", 21), ("collapse", 25), ("merge", 12),
                     ("poison", 100), ("soft offline", 101)):
    refused(name, call, 28, place, 4096, advice)
refused("merging all", call, 157, 67, 1, 0, 0, 0)
done()
