# ends: by itself
# Pushes to the front of the queue for the processor, and off the processors it was given.
import os
from attack import done, must_fail, refused
refused("nicer", os.nice, -5)
refused("real time", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(10))
refused("round robin", os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(10))
refused("affinity", os.sched_setaffinity, 0, range(os.cpu_count()))
refused("affinity of the first", os.sched_setaffinity, 1, [0])
refused("priority of the first", os.setpriority, os.PRIO_PROCESS, 1, -1)
must_fail("disk priority", 251, 1, 0, 1 << 13)
must_fail("sched_setattr", 314, 0, 0, 0)
must_fail("limits of the first", 302, 1, 7, 0, 0)
done()
