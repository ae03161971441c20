# ends: as a forfeit
# Takes from its program the right to be run.
import os
from attack import replace_program
os.close(replace_program())
os.chmod("program", 0)
print("left")
