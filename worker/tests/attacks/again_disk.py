# ends: again
# Fills every place that it can write to, with bytes and with names.
import os
print("left", flush=True)
for place in (".", "/tmp", "/dev/shm"):
    try:
        with open(f"{place}/full", "wb", 0) as file:
            for _ in range(70):
                file.write(b"x" * (1 << 20))
    except OSError:
        pass
try:
    for number in range(5000):
        os.symlink("x", f"/tmp/link{number}")
except OSError:
    pass
os._exit(0)
