# ends: by itself
# Drops files that all bots share from memory, and asks which of them are in memory.
import os
from attack import breach, done, libc, refused, must_fail
file = os.open("/usr/bin/env", os.O_RDONLY)
refused("reading what is in memory alone", os.preadv, file, [bytearray(1)], 0, os.RWF_NOWAIT)
# Advice for an invalid file: an error comes from the kernel, so the filter let the call through.
for advice in range(8):
    if libc.posix_fadvise(-1, 0, 0, advice) == 9:
        breach("advice", advice, "was let through")
if libc.readahead(-1, 0, 4096) < 0:
    breach("reading ahead was let through")
must_fail("cachestat", 451, file, 0, 0, 0)
done()
