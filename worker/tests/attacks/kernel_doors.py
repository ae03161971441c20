# ends: by itself
# Makes every kind of system call that a bot never needs.
from attack import done, must_fail
for name, number in (("bpf", 321), ("perf_event_open", 298), ("io_uring_setup", 425),
                     ("io_uring_enter", 426), ("io_uring_register", 427), ("userfaultfd", 323),
                     ("keyctl", 250), ("add_key", 248), ("request_key", 249), ("memfd_secret", 447),
                     ("init_module", 175), ("finit_module", 313), ("delete_module", 176),
                     ("kexec_load", 246), ("kexec_file_load", 320), ("reboot", 169),
                     ("swapon", 167), ("swapoff", 168), ("acct", 163), ("syslog", 103),
                     ("quotactl", 179), ("fanotify_init", 300), ("inotify_init1", 294),
                     ("modify_ldt", 154), ("iopl", 172), ("ioperm", 173), ("vhangup", 153),
                     ("lookup_dcookie", 212), ("vmsplice", 278), ("mq_notify", 244)):
    must_fail(name, number, 0, 0, 0, 0, 0)
done()
