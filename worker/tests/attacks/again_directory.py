# ends: as a forfeit
# Puts a directory in the place of its program.
import os
os.unlink("program")
try:
    os.mkdir("program")
except OSError:
    # Before Linux 6.6 a layer in memory cannot have it.
    pass
print("left")
