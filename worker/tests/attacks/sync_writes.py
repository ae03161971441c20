# ends: by itself
# Makes writes that wait for a disk.
import os
from attack import done, refused
file = os.open("own", os.O_WRONLY | os.O_CREAT | os.O_SYNC | os.O_DSYNC)
for _ in range(1000):
    os.write(file, b"x")
for flag in (1, 2, 4, 8, 16, 32, 64, 128):
    refused(f"a write with flag {flag}", os.pwritev, file, [b"x"], 0, flag)
    refused(f"a read with flag {flag}", os.preadv, file, [bytearray(1)], 0, flag)
done()
