# ends: as a forfeit
# Makes its program a script whose interpreter is the program itself.
from attack import replace_program
import os
descriptor = replace_program(b"#!/work/program\n" if os.getcwd() == "/work" else b"#!./program\n")
os.close(descriptor)
print("left")
