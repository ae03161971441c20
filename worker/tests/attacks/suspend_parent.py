# ends: by itself
# Stops whoever started it.
import os, signal
from attack import done, say
try:
    os.kill(os.getppid(), signal.SIGSTOP)
except OSError as error:
    say(error)
done()
