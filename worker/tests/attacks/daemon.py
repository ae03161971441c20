# ends: by itself
# Leaves a daemon: forked twice, in a new session, with every signal ignored.
import os, signal, time
from attack import done
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        for descriptor in range(3):
            os.close(descriptor)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
done()
