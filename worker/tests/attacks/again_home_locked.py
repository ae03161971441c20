# ends: again
# Takes every right from the directory that its program is in.
import os
print("left", flush=True)
os.chmod(".", 0)
