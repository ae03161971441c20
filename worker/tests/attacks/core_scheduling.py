# ends: by itself
# Chooses who may share a processor with it.
from attack import call, done, refused
for command in range(5):
    for kind in range(3):
        refused(f"core scheduling {command} {kind}", call, 157, 62, command, 0, kind, 0)
done()
