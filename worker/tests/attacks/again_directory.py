# ends: as a forfeit
# Replaces its program by a directory.
import os
os.unlink("program")
try:
    os.mkdir("program")
except OSError:
    # Before Linux 6.6 a layer in memory does not support this.
    pass
print("left")
