# ends: by itself
# Creates thousands of orphans, which the first process must reap, and zombies, which it need not.
import os
from attack import breach, done, say
made = 0
for _ in range(1500):
    try:
        child = os.fork()
    except OSError as error:
        # A limit on orphans is no breach. They end while this program waits.
        os.waitpid(-1, 0)
        continue
    if child == 0:
        try:
            os.fork()
        except OSError:
            pass
        os._exit(0)
    made += 1
    if made % 16 == 0:
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
say(made, "children")
done()
