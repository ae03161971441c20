# ends: by itself
# Asks file systems which parts of a shared file are in memory, and loads them; looks at its own map.
import errno, fcntl, os, socket
from attack import breach, done, say
LOOKS = {"blocks": 1, "size of a block": 2, "size": 0x5460, "flags": 0x80086601,
         "version": 0x80087601, "attributes": 0x801C581F, "label": 0x81009431,
         "extents": 0xC020660B, "extents in memory": 0xC020662A, "state": 0x40046629,
         "extents into memory": 0x6612, "a copy": 0x40049409, "the identity": 0x80111500,
         "measures": 0xC0046686, "pages": 0xC0606610, "ranges": 0xC0686611, "alarms": 0x5452}
for path in ("/usr/bin/env", "/usr", "/etc/ld.so.cache", "/dev/null", "/proc/self/maps",
             "/proc/self/pagemap", "/work"):
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        say(path, error)
        continue
    for what, request in LOOKS.items():
        try:
            fcntl.ioctl(file, request, bytearray(256))
            breach(what, "of", path)
        except OSError as error:
            if error.errno != errno.ENOTTY:
                breach(what, "of", path, "was let through:", error)
    os.close(file)
# Requests that runtimes make work as usual.
one, other = socket.socketpair()
one.setblocking(False)
other.send(b"four")
count = fcntl.ioctl(one, 0x541B, bytes(4))
if int.from_bytes(count, "little") != 4 or os.isatty(0):
    breach("a wrong answer", count)
os.set_inheritable(one.fileno(), True)
if not os.get_inheritable(one.fileno()):
    breach("a descriptor that is not inherited")
done()
