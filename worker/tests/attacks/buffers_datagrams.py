# ends: by itself, with a listener
# Stores datagrams in sockets that it never reads.
import socket
from attack import breach, done, say
total, held = 0, []
try:
    while True:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
        one.bind(("127.0.0.1", 0))
        one.connect(one.getsockname())
        one.setblocking(False)
        held.append(one)
        for _ in range(3000):
            total += one.send(b"x" * 8000)
except OSError as error:
    say(error)
kept = 0
for one in held:
    try:
        while True:
            kept += len(one.recv(65536))
    except OSError:
        pass
say(total, "bytes sent,", kept, "kept")
if kept > 100_000_000:
    breach(kept, "bytes in", len(held), "sockets")
done()
