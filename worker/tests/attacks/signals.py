# ends: by itself
# Sends signals to every process number.
import os, signal
from attack import WORKER, done, refused, say
signal.signal(signal.SIGTERM, signal.SIG_IGN)
refused("the worker", os.kill, WORKER, signal.SIGKILL)
refused("the worker's group", os.killpg, WORKER, signal.SIGKILL)
for number in (signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
    try:
        os.kill(1, number)
    except OSError as error:
        say("the first process", error)
try:
    os.kill(-1, signal.SIGTERM)
except OSError as error:
    say("everybody", error)
done()
