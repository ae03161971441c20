# ends: by itself
# Requests signals that would wake it while it is stopped.
import ctypes, fcntl, os, signal
from attack import done, refused, say
refused("F_SETSIG", fcntl.fcntl, 0, 10, signal.SIGCONT)
refused("F_NOTIFY", fcntl.fcntl, os.open(".", os.O_RDONLY), 1026, 1)
refused("lease", fcntl.fcntl, os.open("attack.py", os.O_RDONLY), 1024, 0)
refused("pipe size", fcntl.fcntl, 1, 1031, 1 << 20)
done()
