# ends: by itself
# Gives its files names that break programs that list them.
import os
from attack import done
for name in (b"\n", b"a\nb", b"\xff\xfe", b"-rf", b"x" * 255, b"; reboot", b"\x1b[2J", b" ", b"..."):
    with open(name, "wb") as file:
        file.write(b"x")
os.mkdir(b"\xff")
for name in (b"\xff", b"a\nb"):
    try:
        os.chmod(name, 0)
    except PermissionError:
        # A bot that runs as the worker's user is not allowed to change modes by path.
        pass
done()
