# ends: by itself
# Chooses which processes may share a processor core with it.
from attack import call, done, refused
for command in range(5):
    for kind in range(3):
        refused(f"core scheduling {command} {kind}", call, 157, 62, command, 0, kind, 0)
done()
