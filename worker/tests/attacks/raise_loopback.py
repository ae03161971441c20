# ends: by itself
# Brings up its network by any socket, gives it addresses, and names interfaces.
import fcntl, socket, struct
from attack import done, refused
made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
up = struct.pack("16sH22x", b"lo", 0x49)
address = struct.pack("16sHH4s16x", b"lo", 2, 0, bytes([10, 0, 0, 1]))
for name, request, argument in (("flags", 0x8914, up), ("address", 0x8916, address),
                                ("length", 0x8922, up), ("name", 0x8923, up),
                                ("bridge", 0x89A0, up), ("tunnel", 0x89F1, up)):
    refused(name, fcntl.ioctl, made, request, bytearray(argument))
done()
