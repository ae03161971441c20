# ends: by itself
# Fills the kernel's queues of a user: signals, messages, semaphores.
import ctypes, os, signal
from attack import done, libc, say
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
count = 0
while count < 5000 and libc.sigqueue(os.getpid(), signal.SIGRTMIN, 0) == 0:
    count += 1
say(count, "signals")
queues = 0
while queues < 64000 and libc.msgget(0, 0o1600) >= 0:
    queues += 1
say(queues, "queues")
done()
