# ends: at the deadline
# Stops itself and never replies.
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
