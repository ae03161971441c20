# ends: by itself
# Searches /proc for other processes and for counters of the machine.
import os
from attack import WORKER, breach, done, refused, say
if os.path.exists("/proc/self"):
    others = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    if [name for name in others if name != "1"]:
        breach("sees", others)
    for name in ("kcore", "kmsg", "sysrq-trigger", "sys/kernel/core_pattern", "sys/kernel/hostname"):
        refused(f"writing /proc/{name}", open, f"/proc/{name}", "r+b")
    refused("own score", open, "/proc/self/oom_score_adj", "w")
    refused("worker", os.listdir, f"/proc/{WORKER}")
    text = open("/proc/self/environ", "rb").read() + open("/proc/self/cgroup", "rb").read()
    if b"ARBITER" in text:
        breach("environment", text)
done()
