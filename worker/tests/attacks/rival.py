# A bot in another jail. It has the targets of hostile bots.
import ctypes, fcntl, socket, sys
libc = ctypes.CDLL(None)
libc.shmget(424242, 4096, 0o1666)
libc.semget(424242, 1, 0o1666)
libc.msgget(424242, 0o1666)
for place in ("/tmp", "/dev/shm", "."):
    try:
        open(f"{place}/arbiter-test-rival", "w").write("the rival's secret")
    except OSError:
        # Without namespaces a bot is not allowed to write to some of these directories.
        pass
try:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0arbiter-test-rival")
    listener.listen()
except OSError:
    # Without namespaces a bot can create no such socket and bind no socket pair.
    try:
        pair = socket.socketpair()
        pair[0].bind("\0arbiter-test-rival")
    except OSError:
        pass
lock = open("/usr/bin/env", "rb")
fcntl.flock(lock, fcntl.LOCK_EX)
for line in sys.stdin:
    print("alive", flush=True)
