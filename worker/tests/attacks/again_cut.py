# ends: again
# Truncates its program in the middle of the header.
import os
from attack import replace_program
os.close(replace_program(b"\x7fELF\2\1\1" + b"\0" * 60))
print("left")
