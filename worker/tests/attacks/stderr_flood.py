# ends: at the deadline
# Writes to standard error without end.
import os
while True:
    os.write(2, b"loud noise\n" * 4096)
