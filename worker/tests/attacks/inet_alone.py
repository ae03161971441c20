# ends: by itself
# Opens internet sockets. The kernel counts their number and memory for the whole machine.
import socket
from attack import done, refused
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        refused(f"family {family} kind {kind}", socket.socket, family, kind)
        refused(f"pair of {family} kind {kind}", socket.socketpair, family, kind)
done()
