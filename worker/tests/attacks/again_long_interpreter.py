# ends: again
# Makes its program a script whose interpreter has a very long name.
import os
from attack import replace_program
os.close(replace_program(b"#!" + b"/usr/../" * 4000))
print("left")
