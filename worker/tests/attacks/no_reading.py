# ends: by itself
# Makes directories unreadable for their owner, in every possible way.
import os
from attack import call, done
def attempt(act, *arguments):
    try:
        act(*arguments)
    except OSError:
        pass
os.makedirs("locked/inner")
attempt(os.chmod, "locked/inner", 0)
attempt(os.mkdir, "locked/none", 0)
at = os.open("locked", os.O_RDONLY)
attempt(os.umask, 0o777)
attempt(os.makedirs, "locked/masked")
attempt(os.setxattr, "locked", "system.posix_acl_access",
        bytes.fromhex("0200000001000000ffffffff04000000ffffffff20000000ffffffff"))
attempt(os.fchmod, at, 0o300)
attempt(os.fchmod, at, 0o500)
attempt(os.chmod, ".", 0)
done()
