# ends: by itself
# Looks for devices, file systems of the kernel, and other data about the machine.
from attack import breach, done
for path in ("/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vsock", "/dev/net/tun",
             "/dev/ptmx", "/dev/loop-control", "/dev/hwrng", "/dev/rtc", "/dev/vda", "/dev/sda",
             "/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/keys", "/proc/timer_list",
             "/proc/slabinfo", "/proc/sched_debug", "/proc/1/mem", "/proc/1/environ",
             "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/cgroup/cgroup.procs"):
    try:
        with open(path, "rb") as file:
            got = file.read(100)
    except OSError:
        continue
    if got.strip(b"\0"):
        breach(path, got)
done()
