# ends: with its time counted
# Uses processor time in grandchildren without a waiting parent.
import os, signal, time
told, tell = os.pipe()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("started", flush=True)
for _ in range(4):
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
        os._exit(0)
# Ends when the last grandchild has ended.
os.close(tell)
os.read(told, 1)
print("done", flush=True)
