# ends: by itself
# Empties and fills the kernel's entropy pool, which all bots share.
import fcntl, os, struct
from attack import done, refused
for name in ("/dev/random", "/dev/urandom"):
    file = os.open(name, os.O_RDONLY)
    number = bytearray(struct.pack("i", 8))
    for what, request in (("credit", 0x40045201), ("pool", 0x80085202), ("entropy", 0x40085203),
                          ("zap", 0x5204), ("clear", 0x5206), ("seed", 0x5207)):
        refused(what, fcntl.ioctl, file, request, number)
done()
