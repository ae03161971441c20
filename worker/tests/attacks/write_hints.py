# ends: by itself
# Tries to store a number on a file that all bots share: hints, flags, attributes, names, times.
import ctypes, fcntl, os
from attack import done, refused
for path in ("/usr/bin/env", "/dev/null", "/etc/ld.so.cache"):
    file = os.open(path, os.O_RDONLY)
    hint = ctypes.c_uint64(3)
    for command in (1036, 1038):
        refused(f"a hint at {path}", fcntl.fcntl, file, command, bytes(hint))
    refused(f"flags of {path}", fcntl.ioctl, file, 0x40086602, bytearray(8))
    refused(f"version of {path}", fcntl.ioctl, file, 0x40087602, bytearray(8))
    refused(f"attribute of {path}", os.setxattr, path, "user.x", b"1")
    refused(f"time of {path}", os.utime, path, (1, 1))
    refused(f"mode of {path}", os.chmod, path, 0o777)
    refused(f"lease on {path}", fcntl.fcntl, file, 1024, 0)
    refused(f"notice of {path}", fcntl.fcntl, file, 1026, 1)
done()
