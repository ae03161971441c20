# ends: by itself
# Looks up many names that do not exist: the kernel caches each.
import os
from attack import breach, done
for number in range(60000):
    if os.access(f"/usr/bin/there-is-no-such-name-{number}-" + "x" * 180, os.F_OK):
        breach("a name")
done()
