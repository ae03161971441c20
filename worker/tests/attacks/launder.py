# ends: with its time counted
# Uses processor time in grandchildren without a waiting parent.
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("started", flush=True)
for _ in range(4):
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.05
            while time.process_time() < end:
                pass
        os._exit(0)
time.sleep(0.8)
print("done", flush=True)
