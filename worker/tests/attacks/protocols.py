# ends: by itself, with a listener
# Opens streams of protocols with unlimited buffers, and stores memory in socket options.
import socket
from attack import done, refused, say
for family in (socket.AF_INET, socket.AF_INET6):
    for kind, protocol in ((1, 132), (1, 262), (5, 0), (5, 132), (4, 0), (6, 33), (2, 136)):
        refused(f"family {family} kind {kind} protocol {protocol}",
                socket.socket, family, kind, protocol)
plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
group = socket.inet_aton("224.0.0.77") + socket.inet_aton("127.0.0.1")
key = bytes([2, 0, 0, 0, 127, 0, 0, 1]).ljust(128, b"\0") + b"\0\0\4\0" + bytes(4) + b"keys".ljust(80)
for name, level, option, value in (("group", 0, 35, group), ("group of a source", 0, 39, group + group[:4]),
                                   ("filter of sources", 0, 41, group + bytes(8)),
                                   ("options", 0, 4, b"\1\1\1\0"),
                                   ("firewall", 0, 64, bytes(96)), ("key", 6, 14, key),
                                   ("key of fast openings", 6, 33, bytes(16)),
                                   ("syn that is kept", 6, 27, b"\1\0\0\0")):
    refused(name, plain.setsockopt, level, option, value)
# Options that runtimes set.
plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
plain.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 16)
plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    sixth = socket.socket(socket.AF_INET6)
except OSError as error:
    say("no version 6:", error)
else:
    sixth.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
done()
