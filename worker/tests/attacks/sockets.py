# ends: by itself
# Opens sockets of families that no network namespace covers.
import socket
from attack import done, refused
for family in range(3, 46):
    if family != socket.AF_INET6:
        for kind in (1, 2, 3, 5):
            refused(f"family {family} kind {kind}", socket.socket, family, kind)
refused("raw", socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)
refused("raw version 6", socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58)
done()
