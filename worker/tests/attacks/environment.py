# ends: by itself
# Looks for tokens in its environment, and in that of its parent.
import os
from attack import breach, done, refused
for name, value in os.environ.items():
    if "TOKEN" in name or "ARBITER" in name or "secret" in value.lower():
        breach(name, value)
refused("the first process", open, "/proc/1/environ", "rb")
done()
