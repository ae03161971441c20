# ends: by itself
# Sends descriptors of sockets through sockets, as deep and as often as possible.
import os, socket
from attack import breach, done, send_descriptors, say
count = 0
try:
    for _ in range(2000):
        one, other = socket.socketpair(socket.AF_UNIX)
        send_descriptors(other, [one.fileno(), other.fileno()])
        one.close()
        other.close()
        count += 1
except OSError as error:
    say(error)
say(count, "pairs in flight")
inner = os.open("/dev/null", os.O_RDONLY)
try:
    for _ in range(100):
        one, other = socket.socketpair(socket.AF_UNIX)
        send_descriptors(other, [inner])
        inner = one.detach()
except OSError as error:
    say(error)
done()
