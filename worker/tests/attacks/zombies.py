# ends: by itself
# Never waits for its children.
import os
from attack import breach, done, say
count = 0
try:
    for _ in range(500):
        if os.fork() == 0:
            os._exit(0)
        count += 1
except OSError as error:
    say("stopped at", count, error)
if count > 64:
    breach(count, "zombies")
done()
