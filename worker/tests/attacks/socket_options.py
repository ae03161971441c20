# ends: by itself
# Asks for larger buffers, and for programs and protocols in the kernel.
import ctypes, socket
from attack import breach, done, refused
one, other = socket.socketpair(socket.AF_UNIX)
for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
    before = one.getsockopt(socket.SOL_SOCKET, option)
    try:
        one.setsockopt(socket.SOL_SOCKET, option, 1 << 24)
    except OSError:
        pass
    if one.getsockopt(socket.SOL_SOCKET, option) > before:
        breach("a larger buffer")
code = ctypes.create_string_buffer(b"\x06\0\0\0\xff\xff\0\0")
program = ctypes.create_string_buffer(
    (1).to_bytes(8, "little") + ctypes.addressof(code).to_bytes(8, "little"))
for name, option, value in (("send buffer by force", 32, b"\0\0\0\1"),
                            ("receive buffer by force", 33, b"\0\0\0\1"),
                            ("filter", 26, program.raw[:16]), ("program", 50, b"\0\0\0\0"),
                            ("choice of sockets", 51, program.raw[:16]),
                            ("program of a group", 52, b"\0\0\0\0")):
    refused(name, one.setsockopt, socket.SOL_SOCKET, option, value)
refused("protocol above", one.setsockopt, socket.IPPROTO_TCP, 31, b"tls")
done()
