# ends: by itself
# Counts how many threads it may have.
import threading, time
from attack import breach, done, say
count = 0
try:
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
        count += 1
except RuntimeError as error:
    say("stopped at", count, error)
if count > 64:
    breach(count, "threads")
done()
