# ends: by itself
# Looks for its rival through shared memory, semaphores, locks and files in common.
import ctypes, fcntl, os
from attack import breach, done, refused, say
libc = ctypes.CDLL(None, use_errno=True)
if libc.shmget(424242, 4096, 0o600) >= 0:
    breach("shared memory of the rival")
if libc.semget(424242, 1, 0o600) >= 0:
    breach("semaphore of the rival")
if libc.msgget(424242, 0o600) >= 0:
    breach("message queue of the rival")
for place in ("/tmp", "/dev/shm", "/var/tmp", "/work"):
    if os.path.exists(f"{place}/arbiter-test-rival"):
        breach("a file of the rival in", place)
# The rival holds a lock on this; other programs must not notice.
with open("/usr/bin/env", "rb") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        breach("noticed a lock:", error)
done()
