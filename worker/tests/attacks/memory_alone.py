# ends: of memory
# Takes memory in one process.
import mmap
hold = []
print("started", flush=True)
for _ in range(200):
    try:
        block = mmap.mmap(-1, 16 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise SystemExit(9)
    for at in range(0, len(block), 4096):
        block[at] = 1
    hold.append(block)
print("breach: had it all", flush=True)
