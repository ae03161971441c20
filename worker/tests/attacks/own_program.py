# ends: by itself
# Changes its own program, which other matches use.
import os
from attack import done, say
for path in ("own_program.py", "attack.py"):
    try:
        with open(path, "w") as file:
            file.write("raise SystemExit(1)\n")
    except OSError as error:
        say(path, error)
        try:
            os.unlink(path)
        except OSError as error:
            say(path, error)
done()
