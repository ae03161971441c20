# ends: by itself
# Opens sockets of the internet, whose number and memory the whole machine counts together.
import socket
from attack import done, refused
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        refused(f"family {family} kind {kind}", socket.socket, family, kind)
        refused(f"pair of {family} kind {kind}", socket.socketpair, family, kind)
done()
