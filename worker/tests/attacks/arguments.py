# ends: by itself
# Runs programs with too many arguments and environment variables.
import os
import subprocess
from attack import done, refused
refused("arguments", subprocess.run, ["/bin/true", *["x" * 100000] * 60])
refused("environment", os.execve, "/bin/true", ["true"], {f"A{n}": "x" * 100000 for n in range(60)})
done()
