# ends: by itself
# Counts how many processes it may have.
import os, time
from attack import breach, done, say
count = 0
for _ in range(500):
    try:
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        count += 1
    except OSError as error:
        say("stopped at", count, error)
        break
if count > 64:
    breach(count, "processes")
done()
