# ends: of memory
# Takes memory through files without a name, each within the limit of a file.
import os
print("started", flush=True)
hold = []
block = b"x" * (1 << 20)
for _ in range(20):
    try:
        file = os.memfd_create("hog")
    except OSError:
        raise SystemExit(9)
    for _ in range(48):
        os.write(file, block)
    hold.append(file)
print("breach: 960 MB in memfds", flush=True)
