# ends: by itself
# Inspects other processes: those of the worker, and the first one of its namespace.
import os
from attack import WORKER, done, must_fail, refused
for process in (1, WORKER, os.getpid()):
    must_fail(f"ptrace {process}", 101, 16, process, 0, 0)
    must_fail(f"process_vm_readv {process}", 310, process, 0, 0, 0, 0, 0)
    must_fail(f"process_vm_writev {process}", 311, process, 0, 0, 0, 0, 0)
    must_fail(f"kcmp {process}", 312, process, os.getpid(), 0, 0, 0)
must_fail("pidfd_getfd", 438, os.pidfd_open(os.getpid()), 0, 0)
for name in ("mem", "environ", "root/etc/passwd", "fd/0", "cwd", "exe", "maps"):
    refused(f"/proc/1/{name}", open, f"/proc/1/{name}", "rb")
done()
