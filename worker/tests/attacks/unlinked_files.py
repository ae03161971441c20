# ends: by itself
# Fills files with and without names: deleted files, unnamed files and named files.
import os
from attack import breach, done, say
total, held = 0, []
def fill(descriptor):
    global total
    held.append(descriptor)
    try:
        for _ in range(16):
            total += os.write(descriptor, b"x" * (1 << 20))
    except OSError:
        return False
    return True
for place in (".", "/tmp", "/dev/shm"):
    for number in range(6):
        try:
            file = os.open(place, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError:
            continue
        if not fill(file):
            break
    try:
        path = f"{place}/unlinked"
        file = os.open(path, os.O_CREAT | os.O_RDWR)
        os.unlink(path)
        fill(file)
    except OSError:
        pass
say(total, "bytes")
if total > 66 << 20:
    breach(total, "bytes in files without a name")
done()
