# ends: by itself
# Locks files that all bots share, in every way, and checks whether a child sees the locks.
import fcntl, os, struct
from attack import breach, done
held = os.open("/usr/bin/env", os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
fcntl.lockf(held, fcntl.LOCK_SH)
wanted = struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)
for command in (6, 37, 38):
    fcntl.fcntl(held, command, wanted)
child = os.fork()
if child == 0:
    file = os.open("/usr/bin/env", os.O_RDONLY)
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
    kind = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
    os._exit(0 if kind == fcntl.F_UNLCK else 1)
if os.waitpid(child, 0)[1]:
    breach("a lock was found")
done()
