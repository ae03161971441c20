# ends: by itself
# Stops its parent process.
import os, signal
from attack import done, say
try:
    os.kill(os.getppid(), signal.SIGSTOP)
except OSError as error:
    say(error)
done()
