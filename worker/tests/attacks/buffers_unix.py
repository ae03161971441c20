# ends: of memory
# Stores bytes in the buffers of as many sockets as possible.
import os, socket, time
from attack import REFUSED, say
total, block = 0, b"x" * 65536
def fill():
    global total
    held = []
    try:
        while True:
            one, other = socket.socketpair(socket.AF_UNIX)
            one.setblocking(False)
            held.append((one, other))
            try:
                while True:
                    total += one.send(block)
            except BlockingIOError:
                pass
    except OSError as error:
        return held, error
say("started")
for _ in range(40):
    child = os.fork()
    if child == 0:
        kept = fill()
        time.sleep(9)
        os._exit(0)
    time.sleep(0.02)
seen = 0
try:
    while True:
        _, status = os.wait()
        if os.WIFSIGNALED(status):
            os._exit(REFUSED)
        seen += 1
except ChildProcessError:
    pass
print("breach:", seen, "processes kept their buffers full", flush=True)
