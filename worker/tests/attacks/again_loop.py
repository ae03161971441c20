# ends: as a forfeit
# Makes its program a link to itself.
import os
os.unlink("program")
os.symlink("program", "program")
print("left")
