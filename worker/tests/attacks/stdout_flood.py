# ends: at the deadline
# Writes to standard output without end, and never ends a line.
import os
while True:
    os.write(1, b"x" * 65536)
