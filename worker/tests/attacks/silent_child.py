# ends: by itself
# Ends, but leaves a child that keeps its output open.
import os, time
from attack import say
say("done")
if os.fork() == 0:
    time.sleep(60)
os._exit(0)
