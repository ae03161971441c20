# ends: by itself
# Exhausts the first process of its namespace with children and signals.
import os, signal
from attack import done
for _ in range(2000):
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGIO, signal.SIGRTMIN):
        try:
            os.kill(1, number)
        except OSError:
            pass
done()
