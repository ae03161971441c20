# ends: at the deadline
# Stops itself, and never answers.
import os, signal
os.kill(os.getpid(), signal.SIGSTOP)
