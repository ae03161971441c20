# ends: again
# Leaves as many processes as allowed. They ignore every signal that can be ignored.
import os, signal, time
print("left", flush=True)
for number in range(1, 32):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
try:
    for _ in range(100):
        if os.fork() == 0:
            os.setsid()
            os.closerange(0, 256)
            while True:
                time.sleep(9)
except OSError:
    pass
os._exit(0)
