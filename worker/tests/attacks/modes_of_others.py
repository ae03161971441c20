# ends: by itself
# Changes modes, owners, times, attributes and lengths of files that are not its own.
import os
from attack import SECRET, done, refused
FOLDER = os.path.dirname(SECRET)
for path in (SECRET, FOLDER, f"{FOLDER}/stream", "/usr/bin/env", "/etc/passwd"):
    link = f"link{len(path)}"
    os.path.lexists(link) or os.symlink(path, link)
    for name in (path, link, f"/proc/self/cwd/{link}"):
        refused(f"chmod {name}", os.chmod, name, 0)
        refused(f"chown {name}", os.chown, name, os.getuid(), os.getgid())
        refused(f"utime {name}", os.utime, name)
        refused(f"old utime {name}", os.utime, name, (1, 1))
        refused(f"truncate {name}", os.truncate, name, 0)
        refused(f"attribute of {name}", os.setxattr, name, "user.mine", b"x")
    refused(f"lchown {path}", os.lchown, path, os.getuid(), os.getgid())
    refused(f"own times of {path}", lambda: os.utime(path, follow_symlinks=False))
    def by_place():
        place = os.open(path, os.O_PATH)
        os.chmod(f"/proc/self/fd/{place}", 0)
    refused(f"chmod {path} by its place", by_place)
done()
