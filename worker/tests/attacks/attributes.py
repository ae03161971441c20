# ends: by itself
# Stores bytes in the attributes of its files, and sets false attributes of the overlay.
import os
from attack import breach, done, say
total = 0
try:
    for number in range(3000):
        path = f"/tmp/file{number}"
        open(path, "w").close()
        for name in range(8):
            os.setxattr(path, f"user.x{name}", b"x" * 32000)
            total += 32000
except OSError as error:
    say(error)
if total > 66 << 20:
    breach(total, "bytes in attributes")
os.mkdir("lie")
for name, value in (("user.overlay.opaque", b"y"), ("user.overlay.redirect", b"/.."),
                    ("user.overlay.metacopy", b""), ("user.overlay.origin", b"\0" * 30)):
    try:
        os.setxattr("lie", name, value)
    except OSError as error:
        say(name, error)
if os.listdir("lie"):
    breach("files of another directory", os.listdir("lie"))
done()
