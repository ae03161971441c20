# ends: by itself
# Moves the machine's count of asynchronous requests, and reads it.
from attack import done, must_fail, refused
for name, number in (("io_setup", 206), ("io_destroy", 207), ("io_getevents", 208),
                     ("io_submit", 209), ("io_cancel", 210), ("io_pgetevents", 333)):
    must_fail(name, number, 1, 0, 0, 0)
for name in ("aio-nr", "aio-max-nr", "file-nr", "inode-nr", "inode-state", "dentry-state"):
    refused(name, open, f"/proc/sys/fs/{name}")
done()
