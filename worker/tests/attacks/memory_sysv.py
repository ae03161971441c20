# ends: of memory
# Takes System V shared memory, which outlives processes.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
print("started", flush=True)
for number in range(60):
    segment = libc.shmget(0, ctypes.c_size_t(16 << 20), 0o1600)
    if segment < 0:
        raise SystemExit(9)
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 16 << 20)
    libc.shmdt(ctypes.c_void_p(address))
print("breach: 960 MB in segments", flush=True)
