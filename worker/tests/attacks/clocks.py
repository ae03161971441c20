# ends: by itself
# Sets the clocks that measure its time.
import time
from attack import done, must_fail, refused
for clock in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_PROCESS_CPUTIME_ID):
    refused(f"clock {clock}", time.clock_settime, clock, 0)
must_fail("settimeofday", 164, 0, 0)
must_fail("adjtimex", 159, 0)
must_fail("clock_adjtime", 305, 0, 0)
done()
