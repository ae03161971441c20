# ends: by itself
# Asks the kernel for lists of what the machine has mounted, and for its other counts.
from attack import done, must_fail
for name, number in (("statmount", 457), ("listmount", 458), ("quotactl_fd", 443),
                     ("ustat", 136), ("sysfs", 139), ("syslog", 103)):
    must_fail(name, number, 0, 0, 0, 0)
done()
