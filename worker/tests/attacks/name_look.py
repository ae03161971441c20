# ends: by itself
# Asks whether the name of a shared file is in memory: its lookup fails if it needs the disk.
import ctypes, errno, os
from attack import breach, call, done, say
RESOLVE_CACHED = 0x20
how = (ctypes.c_uint64 * 3)(os.O_PATH, 0, RESOLVE_CACHED)
for path in (b"/usr/bin/env", b"/usr/share/doc/no-such-file", b"/etc/ld.so.cache", b"."):
    name = ctypes.create_string_buffer(path)
    try:
        got = call(437, -100, ctypes.addressof(name), ctypes.addressof(how), ctypes.sizeof(how))
        breach("a look-up of", path, "gave", got)
    except OSError as error:
        # Any other error comes from the kernel.
        if error.errno != errno.ENOSYS:
            breach("a look-up of", path, "said", error)
        else:
            say(path, "refused:", error)
done()
