# ends: again
# Leaves as much shared memory as possible, which outlives it.
import ctypes, os
from attack import libc
libc.shmat.restype = ctypes.c_void_p
print("left", flush=True)
step = 8 << 20
for _ in range(46):
    segment = libc.shmget(0, step, 0o1600)
    place = libc.shmat(segment, None, 0) if segment >= 0 else None
    if not place or place == 2**64 - 1:
        break
    ctypes.memset(place, 1, step)
os._exit(0)
