# ends: again
# Makes its program a script of an interpreter whose name never ends.
import os
from attack import replace_program
os.close(replace_program(b"#!" + b"/usr/../" * 4000))
print("left")
