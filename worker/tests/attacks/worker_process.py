# ends: by itself
# Slows the worker process down and inspects it.
import os, resource
from attack import WORKER, done, refused
for which, who in ((os.PRIO_PROCESS, WORKER), (os.PRIO_PGRP, WORKER)):
    refused(f"priority {which}", os.setpriority, which, who, 19)
refused("limits", resource.prlimit, WORKER, resource.RLIMIT_NOFILE)
refused("affinity", os.sched_setaffinity, WORKER, [0])
refused("policy", os.sched_setscheduler, WORKER, os.SCHED_IDLE, os.sched_param(0))
refused("stop", os.kill, WORKER, 19)
for file in ("status", "cmdline", "environ", "maps", "comm", "fd", "task", "cwd/.", "root/."):
    refused(file, lambda: os.open(f"/proc/{WORKER}/{file}", os.O_RDONLY))
done()
