# ends: at the deadline
# Starts processes for ever, each of which does the same.
import os
print("started", flush=True)
while True:
    try:
        os.fork()
    except OSError:
        pass
