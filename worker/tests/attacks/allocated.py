# ends: by itself
# Allocates space after the ends of files, which does not change their length.
import ctypes, os
from attack import breach, call, done, libc, say
got = 0
for number in range(40):
    file = os.open(f"/tmp/room{number}", os.O_CREAT | os.O_RDWR)
    try:
        call(285, file, 1, 1 << 30, 4 << 20)
        call(285, file, 1, 0, 4 << 20)
        got += 8 << 20
    except OSError as error:
        say(number, error)
        break
if got > 64 << 20:
    breach(got, "bytes of room")
done()
