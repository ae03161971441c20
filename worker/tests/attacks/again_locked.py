# ends: as a forfeit
# Removes the permission to execute its program.
import os
from attack import replace_program
os.close(replace_program())
os.chmod("program", 0)
print("left")
