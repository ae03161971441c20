# ends: by itself
# Raises its scheduling priority, moves to other processors, and lowers the priority of the first
# process, which stops the bot and checks its memory.
import os
from attack import breach, done, must_fail, refused
first = os.getpriority(os.PRIO_PROCESS, 1)
refused("nicer", os.nice, -5)
refused("real time", os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(10))
refused("round robin", os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(10))
refused("affinity", os.sched_setaffinity, 0, range(os.cpu_count()))
refused("affinity of the first", os.sched_setaffinity, 1, [0])
refused("priority of the first", os.setpriority, os.PRIO_PROCESS, 1, -1)
refused("last place of the first", os.setpriority, os.PRIO_PROCESS, 1, 19)
refused("last place of the first's group", os.setpriority, os.PRIO_PGRP, 1, 19)
# The first process may have the same user.
refused("last place of a user", os.setpriority, os.PRIO_USER, 0, 19)
refused("last place of a user", os.setpriority, os.PRIO_USER, os.getuid(), 19)
if os.getpriority(os.PRIO_PROCESS, 1) != first:
    breach("the first process has another priority")
# A bot may lower its own priority.
os.nice(1)
must_fail("disk priority", 251, 1, 0, 1 << 13)
must_fail("sched_setattr", 314, 0, 0, 0)
must_fail("limits of the first", 302, 1, 7, 0, 0)
done()
