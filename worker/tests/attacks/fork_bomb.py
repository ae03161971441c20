# ends: at the deadline
# Starts processes without end, and each of them does the same.
import os
print("started", flush=True)
while True:
    try:
        os.fork()
    except OSError:
        pass
