# ends: by itself
# Creates files, directories, links and sockets without end.
import os
from attack import breach, done, say
count = 0
try:
    for number in range(200000):
        if number % 3 == 0:
            open(f"f{number}", "w").close()
        elif number % 3 == 1:
            os.mkdir(f"d{number}")
        else:
            os.symlink("/etc/shadow", f"l{number}")
        count += 1
except OSError as error:
    say("stopped at", count, error)
if count > 5000:
    breach(count, "files")
done()
