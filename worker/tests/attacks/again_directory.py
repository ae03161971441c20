# ends: as a forfeit
# Puts a directory in the place of its program.
import os
os.unlink("program")
os.mkdir("program")
print("left")
