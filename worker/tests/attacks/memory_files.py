# ends: by itself
# Fills every place that it can write to, one after the other.
import os
from attack import breach, done, say
total = 0
block = b"x" * (1 << 20)
for place in (".", "/tmp", "/dev/shm", "/var/tmp", "/run", "/dev", "/etc"):
    for number in range(10):
        try:
            with open(f"{place}/fill{number}", "wb") as file:
                for _ in range(60):
                    file.write(block)
                    total += len(block)
        except OSError as error:
            say(place, error)
            break
say(total >> 20, "MB")
if total > 80 << 20:
    breach("wrote", total)
done()
