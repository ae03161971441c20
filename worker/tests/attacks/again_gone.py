# ends: as a forfeit
# Removes its own program.
import os
os.unlink("program")
print("left")
