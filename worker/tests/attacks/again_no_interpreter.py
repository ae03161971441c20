# ends: as a forfeit
# Makes its program a script whose interpreter is a directory.
import os
from attack import replace_program
os.close(replace_program(b"#!/usr\n"))
print("left")
