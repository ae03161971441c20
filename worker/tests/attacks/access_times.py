# ends: by itself
# Tries to leave access times on files that all bots share.
import os
from attack import breach, done
seen = 0
for folder in ("/usr/bin", "/usr/lib", "/usr/share/doc"):
    for entry in list(os.scandir(folder))[:150]:
        if entry.is_file(follow_symlinks=False):
            before = os.stat(entry.path).st_atime_ns
            with open(entry.path, "rb") as file:
                file.read(1)
            seen += 1
            if os.stat(entry.path).st_atime_ns != before:
                breach("reading left its time at", entry.path)
        elif entry.is_dir(follow_symlinks=False):
            before = os.stat(entry.path).st_atime_ns
            os.listdir(entry.path)
            if os.stat(entry.path).st_atime_ns != before:
                breach("listing left its time at", entry.path)
done()
