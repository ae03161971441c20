# ends: by itself
# Asks for many names that do not exist: the kernel remembers each.
import os
from attack import breach, done
for number in range(60000):
    if os.access(f"/usr/bin/there-is-no-such-name-{number}-" + "x" * 180, os.F_OK):
        breach("a name")
done()
