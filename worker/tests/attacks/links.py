# ends: by itself
# Leaves links to forbidden files for the program that collects its files.
import os
from attack import done, refused, say
os.symlink("/etc/shadow", "result")
os.symlink("/proc/self/fd/0", "input")
os.symlink("../../../../../../../../etc", "up")
os.symlink("loop", "loop")
for path in ("/usr/bin/env", "/etc/passwd", "/dev/null"):
    refused(f"hard link to {path}", os.link, path, "hard" + os.path.basename(path))
done()
