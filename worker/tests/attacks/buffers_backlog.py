# ends: by itself, with a listener
# Stores bytes in connections that its servers never accept.
import socket
from attack import breach, done, say
def knock(server):
    total = 0
    try:
        for _ in range(50):
            with socket.socket() as one:
                one.settimeout(0.01)
                one.connect(server.getsockname())
                one.setblocking(False)
                try:
                    while True:
                        total += one.send(b"x" * (1 << 20))
                except BlockingIOError:
                    pass
    except OSError as error:
        say(error)
    return total
total = 0
held = [socket.socket() for _ in range(20)]
for server in held:
    server.bind(("127.0.0.1", 0))
    try:
        server.listen(1000)
    except PermissionError as error:
        say(error)
        break
    total += knock(server)
say(total, "bytes")
if total > 5_000_000:
    breach(total, "bytes wait with", len(held), "servers")
done()
