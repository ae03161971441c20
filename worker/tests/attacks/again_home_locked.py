# ends: again
# Removes all permissions of the directory of its program.
import os
print("left", flush=True)
os.chmod(".", 0)
