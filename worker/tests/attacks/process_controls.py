# ends: by itself
# Uses every setting of a process that could give it more rights.
import os
from attack import call, done, refused
for name, arguments in (("security bits", (28, 1, 0, 0, 0)), ("ambient rights", (47, 2, 21, 0, 0)),
                        ("bounding set", (24, 0, 0, 0, 0)), ("memory map", (35, 1, 4096, 0, 0)),
                        ("disk flusher", (57, 1, 0, 0, 0)),
                        ("privileges", (38, 0, 0, 0, 0))):
    refused(name, call, 157, *arguments)
for name in ("mem", "oom_score_adj", "autogroup", "uid_map", "gid_map", "setgroups",
             "timens_offsets", "clear_refs", "coredump_filter", "attr/current", "attr/exec",
             "attr/fscreate", "sched", "make-it-fail", "comm", "loginuid"):
    if os.path.exists("/proc/self") and os.getcwd() == "/work":
        refused(name, open, f"/proc/self/{name}", "r+b")
done()
