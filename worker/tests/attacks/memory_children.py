# ends: of memory
# Takes memory in many processes, little in each.
import os, time
print("started", flush=True)
for _ in range(30):
    if os.fork() == 0:
        block = bytearray(b"x" * (20 << 20))
        # Longer than all others need to take theirs.
        time.sleep(9)
        os._exit(0)
alive = 0
for _ in range(30):
    _, status = os.wait()
    alive += status == 0
if alive == 30:
    print("breach: 600 MB in children", flush=True)
