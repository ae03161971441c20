# ends: by itself
# Nests directories deeper than the limit of a path.
import os
from attack import done, say
depth = 0
try:
    for _ in range(20000):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
        depth += 1
except OSError as error:
    say("stopped at", depth, error)
done()
