# ends: by itself
# Stores bytes in as many pipes as possible, each as large as possible.
import fcntl, os, time
from attack import breach, done, say
def fill():
    total = 0
    try:
        while True:
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            try:
                fcntl.fcntl(writer, 1031, 1 << 20)
            except OSError:
                pass
            try:
                while True:
                    total += os.write(writer, b"x" * 65536)
            except BlockingIOError:
                pass
    except OSError:
        return total
told, tell = os.pipe()
for _ in range(24):
    if os.fork() == 0:
        total = fill()
        os.write(tell, b"%12d" % total)
        # Longer than all others need to fill theirs.
        time.sleep(9)
        os._exit(0)
os.close(tell)
total, count = 0, 0
while count < 24 and (word := os.read(told, 12)):
    total, count = total + int(word), count + 1
say(total, "bytes in pipes")
if total > 400_000_000:
    breach(total, "bytes in pipes")
done()
