# ends: by itself, with a listener
# Stores bytes in connections to its own servers, which never read.
import os, socket, time
from attack import breach, done, say
def larger(made):
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        made.setsockopt(socket.SOL_SOCKET, option, 1 << 26)
    return made
def fill():
    total, held = 0, []
    try:
        server = larger(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(1000)
        for _ in range(30):
            one = larger(socket.socket())
            one.settimeout(0.2)
            one.connect(server.getsockname())
            held.append((one, larger(server.accept()[0])))
            one.setblocking(False)
            try:
                while True:
                    total += one.send(b"x" * (1 << 20))
            except BlockingIOError:
                pass
    except OSError as error:
        say(error)
    return total, held
told, tell = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        total, held = fill()
        os.write(tell, b"%12d" % total)
        # Longer than all others need to fill theirs.
        time.sleep(9)
        os._exit(0)
os.close(tell)
total = sum(int(os.read(told, 12) or b"0") for _ in range(8))
say(total, "bytes in connections")
if total > 40_000_000:
    breach(total, "bytes in connections")
done()
