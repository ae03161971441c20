# ends: by itself
# Creates namespaces, and enters those of other processes.
import os
from attack import call, done, must_fail, refused
for name, flag in (("user", 0x10000000), ("mount", 0x20000), ("process", 0x20000000),
                   ("network", 0x40000000), ("ipc", 0x8000000), ("uts", 0x4000000),
                   ("cgroup", 0x2000000), ("time", 0x80)):
    must_fail(f"unshare {name}", 272, flag)
    if flag > 0xFF:
        must_fail(f"clone {name}", 56, flag | 17, 0, 0, 0, 0)
must_fail("clone3", 435, 0, 0)
if os.path.exists("/proc/self/ns"):
    for name in ("user", "mnt", "net"):
        try:
            descriptor = os.open(f"/proc/self/ns/{name}", os.O_RDONLY)
        except OSError:
            continue
        must_fail(f"setns {name}", 308, descriptor, 0)
refused("more user namespaces", open, "/proc/sys/user/max_user_namespaces", "w")
done()
