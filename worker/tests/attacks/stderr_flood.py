# ends: at the deadline
# Writes to its error output for ever.
import os
while True:
    os.write(2, b"loud noise\n" * 4096)
