# ends: at the deadline
# Writes to its output for ever, without the end of a line.
import os
while True:
    os.write(1, b"x" * 65536)
