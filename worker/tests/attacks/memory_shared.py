# ends: of memory
# Takes shared memory, which no limit of a process counts.
import mmap
print("started", flush=True)
hold = []
for _ in range(60):
    block = mmap.mmap(-1, 16 << 20)
    for at in range(0, len(block), 4096):
        block[at] = 1
    hold.append(block)
print("breach: 960 MB shared", flush=True)
