# ends: by itself
# Creates a sparse file of a terabyte, and lengthens a file with fallocate.
import os, signal
from attack import breach, done, say, refused
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("big", "wb") as file:
    refused("a terabyte", os.truncate, file.fileno(), 1 << 40)
    refused("allocating", os.posix_fallocate, file.fileno(), 0, 1 << 30)
done()
