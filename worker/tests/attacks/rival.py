# A bot in another jail, with what hostile ones look for.
import ctypes, fcntl, socket, sys
libc = ctypes.CDLL(None)
libc.shmget(424242, 4096, 0o1666)
libc.semget(424242, 1, 0o1666)
libc.msgget(424242, 0o1666)
for place in ("/tmp", "/dev/shm", "."):
    try:
        open(f"{place}/arbiter-test-rival", "w").write("the rival's secret")
    except OSError:
        # They do not exist without namespaces.
        pass
try:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0arbiter-test-rival")
    listener.listen()
except OSError:
    # Without namespaces there are no such sockets, and pairs cannot be named.
    try:
        pair = socket.socketpair()
        pair[0].bind("\0arbiter-test-rival")
    except OSError:
        pass
lock = open("/usr/bin/env", "rb")
fcntl.flock(lock, fcntl.LOCK_EX)
for line in sys.stdin:
    print("alive", flush=True)
