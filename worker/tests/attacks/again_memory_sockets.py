# ends: again
# Leaves memory in the queues of sockets that only those queues refer to.
import os, socket
from attack import send_descriptors
print("left", flush=True)
block = b"x" * 60000
for _ in range(100):
    one, other = socket.socketpair(socket.AF_UNIX)
    other.setblocking(False)
    send_descriptors(other, [one.fileno(), other.fileno()])
    try:
        while True:
            other.send(block)
    except OSError:
        pass
os._exit(0)
