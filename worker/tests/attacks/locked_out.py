# ends: by itself
# Removes all permissions of its files and directories.
import os
from attack import done
os.mkdir("locked")
open("locked/file", "w").close()
os.chmod("locked", 0)
os.chmod(".", 0)
os.chmod("/tmp", 0) if os.access("/tmp", os.W_OK) else None
done()
