# ends: by itself
# Reads files of other users, and writes outside its directories.
import os
from attack import SECRET, breach, done, refused
refused("the worker's secret", open, SECRET)
refused("its directory", os.listdir, os.path.dirname(SECRET))
for path in ("/etc/shadow", "/root", "/home", "/proc/1/root/etc/shadow", "/sys", "/var/lib",
             "/store", "/box", "/.dockerenv", "/run/docker.sock", "/dev/kmsg", "/dev/mem",
             "/dev/sda", "/dev/vda", "/dev/tty", "/dev/ptmx", "/dev/fuse", "/dev/kvm"):
    try:
        if os.path.isdir(path):
            if os.listdir(path):
                breach("saw", path, os.listdir(path)[:5])
        elif os.path.exists(path):
            refused(path, open, path, "rb")
    except OSError:
        pass
for path in ("/usr/bin/new", "/usr/new", "/etc/passwd", "/etc/ld.so.preload", "/bin/new", "/new",
             "/dev/new", "/proc/new", "/store/new", "/box/new", "/lib/new"):
    refused(path, open, path, "wb")
refused("changing the system", os.chmod, "/usr/bin/env", 0o777)
refused("touching the system", os.utime, "/usr/bin/env", (0, 0))
refused("removing the system", os.unlink, "/usr/bin/env")
done()
