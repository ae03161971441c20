//! The seccomp filter of system calls, which every isolated bot has.
//!
//! # Theory of operation
//!
//! The filter is a deny-list. An allow-list would be stricter. But five language runtimes need some
//! 250 calls. If one were missing, a bot would forfeit and its author could not find out why.
//! Namespaces, credentials and control groups isolate a bot. The filter denies calls that those do
//! not cover (`vsock`, `io_uring`, keyrings, locks on shared files), and the parts of the kernel
//! with the vulnerabilities of the last years (`bpf`, `userfaultfd`, mounts, user namespaces).
//! Calls newer than this list return `ENOSYS`, as on an older kernel. Programs then use older
//! calls.
//!
//! The filter is a binary search over the call's number. On installation the kernel runs it for
//! every number, to cache the allowed calls. A list would take 0.45 ms, a search takes a tenth.

mod bpf;
mod madvise;
mod same_user;
mod shared_resources;

use std::collections::BTreeMap;
use std::io;

use libc::{c_long, sock_filter};
use serde::{Deserialize, Serialize};

use super::syscalls;
use bpf::{ARCHITECTURE, JUMP_IF_EQUAL, LOAD, MACHINE, NUMBER, instruction, return_value, search};
use madvise::MADVISE;
use same_user::{FCHMOD, MKDIRAT, PATH_CALLS, PATH_CALLS_HERE, SETPRIORITY, UMASK, UTIMENSAT};
use shared_resources::{
    FAKED_CALLS, FCNTL, GETSOCKOPT, HIDDEN_CALLS, IOCTL, IOCTL_NETWORK, MSYNC, SETSOCKOPT,
    STREAM_SOCKET, VECTOR_FLAGS,
};

/// What the filter does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The kernel executes it.
    Allow,
    /// It fails with this error.
    Errno(i32),
    /// It returns 0 and does nothing. Programs need the call, but it would affect other bots.
    FakeSuccess,
    /// The action depends on an argument.
    CheckArg(&'static ArgCheck),
    /// The action depends on the upper half of an argument, which pointers have.
    CheckArgUpper(&'static ArgCheck),
}

/// A decision by the lower half of one argument.
#[derive(Debug, PartialEq, Eq)]
struct ArgCheck {
    argument: u32,
    cases: &'static [(Arg, Action)],
    otherwise: Action,
}

/// A condition on an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arg {
    /// It has this value.
    Equals(u32),
    /// It has any of these bits.
    HasAny(u32),
}

/// Sets attributes of the process for security modules.
const LSM_SET_SELF_ATTR: c_long = 460;

const DENY: Action = Action::Errno(libc::EPERM);
const NOT_IMPLEMENTED: Action = Action::Errno(libc::ENOSYS);
const INVALID: Action = Action::Errno(libc::EINVAL);

/// The number of the first call that was not reviewed: the one after `mseal`, on all architectures.
const CEILING: u32 = 463;

/// Calls that always fail.
const DENIED_CALLS: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mbind,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Interfaces of the kernel that no bot needs.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_secret,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_vmsplice,
    libc::SYS_lookup_dcookie,
    // Maps and populates memory in one call that no freezer interrupts.
    libc::SYS_remap_file_pages,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    // Scheduling, which the worker controls.
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_ioprio_set,
    // Notifications about files that bots share.
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Devices, sockets and FIFOs in the file system.
    libc::SYS_mknodat,
    libc::SYS_mq_notify,
    LSM_SET_SELF_ATTR,
];

/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const DENIED_CALLS_HERE: &[c_long] = &[
    libc::SYS_mknod,
    libc::SYS_inotify_init,
    libc::SYS_modify_ldt,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    libc::SYS_nfsservctl,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_CALLS_HERE: &[c_long] = &[libc::SYS_kexec_file_load];

/// IPC that is shared by the whole machine without namespaces. A process can attach a shared memory
/// segment by its number alone, without `shmget`.
const SHARED_IPC_CALLS: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    // One end of a connected pair could still bind an abstract name, which another bot then cannot.
    libc::SYS_bind,
    libc::SYS_listen,
];

/// Timers send signals, which would wake a bot that is stopped by signals.
const TIMER_CALLS: &[c_long] = &[libc::SYS_timer_create];

/// Calls that allocate memory that no process needs to map.
const UNMAPPED_MEMORY_CALLS: &[c_long] = &[libc::SYS_memfd_create, libc::SYS_shmget];

/// The lowest byte of the flags is the signal that the parent gets when the child ends: `SIGCHLD`,
/// or none for a thread. Others would wake a parent that is stopped by signals. The two that this
/// mask does not catch (1 and 16) do not wake it.
const OTHER_EXIT_SIGNALS: u32 = 0xFF & !libc::SIGCHLD.cast_unsigned();

const CLONE: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[
        (Arg::HasAny(OTHER_EXIT_SIGNALS), DENY),
        (
            Arg::HasAny(
                (libc::CLONE_NEWUSER
                    | libc::CLONE_NEWNS
                    | libc::CLONE_NEWPID
                    | libc::CLONE_NEWNET
                    | libc::CLONE_NEWIPC
                    | libc::CLONE_NEWUTS
                    | libc::CLONE_NEWCGROUP)
                    .cast_unsigned(),
            ),
            DENY,
        ),
    ],
    otherwise: Action::Allow,
};

/// Network namespaces do not cover every socket family: `AF_VSOCK` reaches the hypervisor.
const SOCKET: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[
        (Arg::Equals(libc::AF_UNIX.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::AF_INET.cast_unsigned()), Action::CheckArg(&STREAM_SOCKET)),
        (Arg::Equals(libc::AF_INET6.cast_unsigned()), Action::CheckArg(&STREAM_SOCKET)),
    ],
    otherwise: Action::Errno(libc::EAFNOSUPPORT),
};

/// For a bot in the machine's own network, or in an empty network.
const UNIX_SOCKET: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(Arg::Equals(libc::AF_UNIX.cast_unsigned()), Action::Allow)],
    otherwise: Action::Errno(libc::EAFNOSUPPORT),
};

/// Without namespaces, path and abstract sockets are the machine's. Only socket pairs of types that
/// stay connected are allowed: a datagram socket can be connected to any path afterwards (the
/// numbers of all such types have bit 1 or 3).
const CONNECTED_PAIR: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Arg::HasAny(0b1010), DENY)],
    otherwise: Action::CheckArg(&ArgCheck {
        argument: 0,
        cases: &[(Arg::Equals(libc::AF_UNIX.cast_unsigned()), Action::Allow)],
        otherwise: Action::Errno(libc::EAFNOSUPPORT),
    }),
};

/// Allows changes to the caller's own limits only, not to those of an init with the same user.
const PRLIMIT: ArgCheck =
    ArgCheck { argument: 0, cases: &[(Arg::Equals(0), Action::Allow)], otherwise: DENY };

/// Allows a query, and a change to the default.
const PERSONALITY: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(Arg::Equals(0), Action::Allow), (Arg::Equals(u32::MAX), Action::Allow)],
    otherwise: DENY,
};

const PRCTL: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(Arg::Equals(PR_SCHED_CORE), DENY), (Arg::Equals(PR_SET_MEMORY_MERGE), DENY)],
    otherwise: Action::Allow,
};

/// The same for bots that are stopped by signals.
const PRCTL_WITHOUT_FREEZER: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(Arg::Equals(libc::PR_SET_PDEATHSIG.cast_unsigned()), Action::FakeSuccess)],
    otherwise: Action::CheckArg(&PRCTL),
};

/// Core scheduling, and merging of equal pages of different processes.
const PR_SCHED_CORE: u32 = 62;
const PR_SET_MEMORY_MERGE: u32 = 67;

/// Features that the machine lacks. The filter compensates for some of them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each may be missing independently")]
pub(super) struct MissingFeatures {
    /// No freezer: bots are stopped by signals.
    pub(super) freezer: bool,
    /// No control group for memory: only mapped memory is counted.
    pub(super) memory: bool,
    /// No namespaces: bots see the machine's own network and processes.
    pub(super) namespaces: bool,
    /// No address in the bot's network to connect to.
    pub(super) network: bool,
    /// No limit of connections that wait for a server in the bot's network.
    pub(super) backlog: bool,
    /// No separate users: bots run as the worker's own user.
    pub(super) users: bool,
}

/// All rules, by the number of the call. Other calls are allowed.
fn rules(missing: MissingFeatures) -> BTreeMap<u32, Action> {
    let number = |call: &c_long| u32::try_from(*call).expect("numbers of calls are small");
    let mut rules = BTreeMap::new();
    for call in DENIED_CALLS.iter().chain(DENIED_CALLS_HERE) {
        rules.insert(number(call), DENY);
    }
    for (call, check) in [
        (libc::SYS_clone, &CLONE),
        (libc::SYS_madvise, &MADVISE),
        (libc::SYS_socket, if missing.network { &UNIX_SOCKET } else { &SOCKET }),
        (libc::SYS_socketpair, if missing.namespaces { &CONNECTED_PAIR } else { &UNIX_SOCKET }),
        (libc::SYS_setsockopt, &SETSOCKOPT),
        (libc::SYS_getsockopt, &GETSOCKOPT),
        (libc::SYS_ioctl, if missing.network { &IOCTL } else { &IOCTL_NETWORK }),
        (libc::SYS_fcntl, &FCNTL),
        (libc::SYS_prlimit64, &PRLIMIT),
        (libc::SYS_personality, &PERSONALITY),
        (libc::SYS_setpriority, &SETPRIORITY),
        (libc::SYS_prctl, if missing.freezer { &PRCTL_WITHOUT_FREEZER } else { &PRCTL }),
        (libc::SYS_preadv2, &VECTOR_FLAGS),
        (libc::SYS_pwritev2, &VECTOR_FLAGS),
        (libc::SYS_msync, &MSYNC),
    ] {
        rules.insert(number(&call), Action::CheckArg(check));
    }
    for call in HIDDEN_CALLS {
        rules.insert(number(call), NOT_IMPLEMENTED);
    }
    for call in FAKED_CALLS {
        rules.insert(number(call), Action::FakeSuccess);
    }
    if missing.namespaces {
        for call in SHARED_IPC_CALLS {
            rules.insert(number(call), DENY);
        }
        // The network is the machine's, and Landlock before version 9 allows path sockets.
        rules.insert(number(&libc::SYS_socket), Action::Errno(libc::EAFNOSUPPORT));
    }
    if missing.backlog {
        rules.insert(number(&libc::SYS_listen), DENY);
    }
    if missing.users {
        for call in PATH_CALLS.iter().chain(PATH_CALLS_HERE) {
            rules.insert(number(call), DENY);
        }
        for (call, check) in
            [(libc::SYS_fchmod, &FCHMOD), (libc::SYS_mkdirat, &MKDIRAT), (libc::SYS_umask, &UMASK)]
        {
            rules.insert(number(&call), Action::CheckArg(check));
        }
        #[cfg(target_arch = "x86_64")]
        rules.insert(number(&libc::SYS_mkdir), Action::CheckArg(&same_user::MKDIR));
        rules.insert(number(&libc::SYS_utimensat), Action::CheckArgUpper(&UTIMENSAT));
    }
    if missing.memory {
        for call in UNMAPPED_MEMORY_CALLS {
            rules.insert(number(call), NOT_IMPLEMENTED);
        }
    }
    if missing.freezer {
        for call in TIMER_CALLS {
            rules.insert(number(call), DENY);
        }
    }
    rules
}

/// Assembles the filter.
pub(super) fn program(missing: MissingFeatures) -> Vec<sock_filter> {
    let mut spans = vec![(0, Action::Allow)];
    let mut begin = |number: u32, action: Action| {
        if spans.last().is_some_and(|(_, last)| *last != action) {
            if spans.last().is_some_and(|(start, _)| *start == number) {
                spans.pop();
            }
            spans.push((number, action));
        }
    };
    for (number, action) in rules(missing) {
        begin(number, action);
        begin(number + 1, Action::Allow);
    }
    begin(CEILING, NOT_IMPLEMENTED);
    let mut program = vec![
        instruction(LOAD, 0, 0, ARCHITECTURE),
        instruction(JUMP_IF_EQUAL, 1, 0, MACHINE),
        return_value(libc::SECCOMP_RET_KILL_PROCESS),
        instruction(LOAD, 0, 0, NUMBER),
    ];
    search(&spans, &mut program);
    program
}

/// Installs the filter for the caller and all programs that it starts. The caller must have set
/// `no_new_privs`.
pub(super) fn install(missing: MissingFeatures) -> io::Result<()> {
    syscalls::install_filter(&program(missing))
}

#[cfg(test)]
mod tests {
    use super::bpf::{ARGUMENTS, JUMP, JUMP_IF_AT_LEAST, JUMP_IF_SET, RETURN};
    use super::*;

    /// Runs the filter for a call, in the same way as the kernel.
    fn run(program: &[sock_filter], machine: u32, number: u32, arguments: [u64; 6]) -> u32 {
        let mut position = 0;
        let mut accumulator = 0;
        loop {
            let sock_filter { code, jt, jf, k } = program[position];
            position += 1;
            let skip = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                LOAD => {
                    accumulator = match k {
                        NUMBER => number,
                        ARCHITECTURE => machine,
                        _ => {
                            let index = usize::try_from((k - ARGUMENTS) / 8).unwrap();
                            let half = arguments[index] >> ((k - ARGUMENTS) % 8 * 8);
                            u32::try_from(half & u64::from(u32::MAX)).unwrap()
                        }
                    };
                }
                JUMP => position += usize::try_from(k).unwrap(),
                JUMP_IF_EQUAL => position += skip(accumulator == k),
                JUMP_IF_AT_LEAST => position += skip(accumulator >= k),
                JUMP_IF_SET => position += skip(accumulator & k != 0),
                RETURN => return k,
                other => panic!("{other}"),
            }
        }
    }

    fn action(call: c_long, arguments: [u64; 6]) -> u32 {
        run(&program(MissingFeatures::default()), MACHINE, u32::try_from(call).unwrap(), arguments)
    }

    const ALL: MissingFeatures = MissingFeatures {
        freezer: true,
        memory: true,
        namespaces: true,
        network: true,
        backlog: true,
        users: true,
    };
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    const ENOTTY: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOTTY.cast_unsigned();
    const ENOPROTOOPT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOPROTOOPT.cast_unsigned();

    #[test]
    fn every_rule_is_applied() {
        for (number, rule) in rules(ALL) {
            let result = run(&program(ALL), MACHINE, number, [77; 6]);
            match rule {
                Action::Allow => assert_eq!(result, ALLOW),
                Action::Errno(error) => {
                    assert_eq!(result, libc::SECCOMP_RET_ERRNO | error.cast_unsigned());
                }
                Action::FakeSuccess => assert_eq!(result, libc::SECCOMP_RET_ERRNO),
                Action::CheckArg(_) | Action::CheckArgUpper(_) => {}
            }
        }
        let rules = rules(MissingFeatures::default());
        for number in (0..CEILING).filter(|number| !rules.contains_key(number)) {
            assert_eq!(
                run(&program(MissingFeatures::default()), MACHINE, number, [0; 6]),
                ALLOW,
                "{number}"
            );
        }
    }

    #[test]
    fn unknown_calls_return_enosys() {
        for number in [CEILING, 1000, 0x4000_0000, 0x4000_0001, u32::MAX] {
            assert_eq!(run(&program(MissingFeatures::default()), MACHINE, number, [0; 6]), ENOSYS);
        }
        let foreign = run(&program(MissingFeatures::default()), 0x4000_0003, 1, [0; 6]);
        assert_eq!(foreign, libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn arguments_are_checked() {
        let socket = |family: u64| action(libc::SYS_socket, [family, 1, 0, 0, 0, 0]);
        assert_eq!([socket(1), socket(2), socket(10)], [ALLOW; 3]);
        assert!([16, 17, 38, 40].iter().all(|family| socket(*family) != ALLOW));
        let kind = |kind: u64| action(libc::SYS_socket, [2, kind, 0, 0, 0, 0]);
        assert_eq!(
            [kind(0x8_0801), kind(0x8_0802), kind(3), kind(5)],
            [ALLOW, EPERM, EPERM, EPERM]
        );
        let protocol = |number: u64| action(libc::SYS_socket, [10, 1, number, 0, 0, 0]);
        assert_eq!([protocol(0), protocol(6)], [ALLOW; 2]);
        assert!([17, 132, 136, 262].iter().all(|number| protocol(*number) != ALLOW));
        let option = |level, option| action(libc::SYS_setsockopt, [0, level, option, 0, 0, 0]);
        let faked = libc::SECCOMP_RET_ERRNO;
        assert_eq!([option(1, 7), option(1, 26), option(6, 31)], [faked, EPERM, EPERM]);
        // `IPV6_V6ONLY` is allowed.
        assert_eq!([option(41, 26), option(0, 1), option(6, 7), option(1, 2)], [ALLOW; 4]);
        // Multicast groups, source filters, firewall tables, keys, and protocols without options.
        let refused = [(0, 35), (0, 41), (0, 64), (41, 20), (41, 48), (6, 14), (6, 38), (132, 1)];
        assert!(refused.iter().all(|(level, name)| option(*level, *name) != ALLOW));
        let clone = |flags: u64| action(libc::SYS_clone, [flags, 0, 0, 0, 0, 0]);
        assert_eq!((clone(0x3D_0F00), clone(0x1000_0011)), (ALLOW, EPERM));
        let exit_signal = |signal: libc::c_int| clone(u64::try_from(signal).unwrap());
        assert_eq!([0, libc::SIGCHLD].map(exit_signal), [ALLOW; 2]);
        assert_eq!([libc::SIGCONT, libc::SIGUSR1, libc::SIGKILL, 64].map(exit_signal), [EPERM; 4]);
        let advice = |number: u64| action(libc::SYS_madvise, [0, 0, number, 0, 0, 0]);
        assert_eq!([advice(4), advice(8), advice(14), advice(24)], [ALLOW; 4]);
        assert!([22, 23, 25, 26, 102, 103, 1 << 31].iter().all(|number| advice(*number) != ALLOW));
        let prlimit = |pid: u64| action(libc::SYS_prlimit64, [pid, 0, 0, 0, 0, 0]);
        assert_eq!((prlimit(0), prlimit(1)), (ALLOW, EPERM));
        let priority = |kind: u64, of: u64| action(libc::SYS_setpriority, [kind, of, 19, 0, 0, 0]);
        assert_eq!([priority(0, 0), priority(0, 1), priority(0, 77)], [ALLOW, EPERM, EPERM]);
        assert_eq!([priority(1, 0), priority(2, 0), priority(2, 1000)], [EPERM; 3]);
        let get_option = |level, option| action(libc::SYS_getsockopt, [0, level, option, 0, 0, 0]);
        // Cookies of a socket and of its namespace; then the kind, and an option of TCP.
        assert_eq!([get_option(1, 57), get_option(1, 71)], [ENOPROTOOPT; 2]);
        assert_eq!([get_option(1, 3), get_option(6, 57)], [ALLOW; 2]);
        assert_eq!(action(libc::SYS_openat2, [0; 6]), ENOSYS);
    }

    #[test]
    fn only_known_ioctls_are_allowed() {
        let with = |missing: MissingFeatures, request: u64| {
            let number = u32::try_from(libc::SYS_ioctl).unwrap();
            run(&program(missing), MACHINE, number, [3, request, 0, 0, 0, 0])
        };
        let ioctl = |request: u64| with(MissingFeatures::default(), request);
        let allowed = [0x5401, 0x802C_542A, 0x5413, 0x540F, 0x5411, 0x541B, 0x5421, 0x5450, 0x5451];
        assert!(allowed.iter().all(|request| ioctl(*request) == ALLOW));
        // `TIOCSTI` types into a terminal. The kernel ignores the upper half of the number.
        assert_eq!([ioctl(0x5412), ioctl(0xF_0000_5412), ioctl(0x541C)], [ENOTTY; 3]);
        // Extents of a file and which of them are cached; pages and ranges of a process.
        let denied = [0xC020_660B, 0xC020_662A, 0x4004_6629, 0x6612, 0xC060_6610, 0xC068_6611];
        assert!(denied.iter().all(|request| ioctl(*request) == ENOTTY));
        // Interfaces of a bot's own network can be read, but not changed.
        assert_eq!([ioctl(0x8912), ioctl(0x8914)], [ALLOW, ENOTTY]);
        assert_eq!(with(ALL, 0x8912), ENOTTY);
        assert_eq!(with(ALL, 0x541B), ALLOW);
    }

    #[test]
    fn without_namespaces_no_socket_reaches_another_process() {
        let call = |call: c_long, arguments: [u64; 6]| {
            run(&program(ALL), MACHINE, u32::try_from(call).unwrap(), arguments)
        };
        for family in 0..46 {
            assert_ne!(call(libc::SYS_socket, [family, 1, 0, 0, 0, 0]), ALLOW);
        }
        let pair = |family: u64, kind: u64| call(libc::SYS_socketpair, [family, kind, 0, 0, 0, 0]);
        for flags in [0, 0o4000, 0o200_0000, 0o200_4000] {
            assert_eq!([pair(1, 1 | flags), pair(1, 5 | flags)], [ALLOW; 2]);
            // Datagrams, raw (which is the same there), and packets.
            assert!([2, 3, 6, 10].iter().all(|kind| pair(1, kind | flags) != ALLOW));
            assert!([2, 30, 42].iter().all(|family| pair(*family, 1 | flags) != ALLOW));
        }
        let naming = [libc::SYS_bind, libc::SYS_listen];
        assert_eq!(naming.map(|number| call(number, [3, 0x7000, 12, 0, 0, 0])), [EPERM; 2]);
        assert_eq!(naming.map(|number| action(number, [3, 0x7000, 12, 0, 0, 0])), [ALLOW; 2]);
    }

    #[test]
    fn servers_are_denied_without_a_backlog_limit() {
        let missing = MissingFeatures { backlog: true, ..MissingFeatures::default() };
        let listen = u32::try_from(libc::SYS_listen).unwrap();
        assert_eq!(run(&program(missing), MACHINE, listen, [3, 1, 0, 0, 0, 0]), EPERM);
    }

    #[test]
    fn bots_with_the_workers_user_change_open_files_only() {
        let call = |call: c_long, arguments: [u64; 6]| {
            run(&program(ALL), MACHINE, u32::try_from(call).unwrap(), arguments)
        };
        let times = |path: u64| call(libc::SYS_utimensat, [3, path, 0, 0, 0, 0]);
        assert_eq!(times(0), ALLOW);
        assert_eq!([times(0x7000), times(1 << 32), times(u64::MAX << 32)], [EPERM; 3]);
        let mode = |mode: u64| call(libc::SYS_fchmod, [3, mode, 0, 0, 0, 0]);
        assert_eq!([mode(0o755), mode(0o644), mode(0o400)], [ALLOW; 3]);
        assert_eq!([mode(0), mode(0o300), mode(0o4755), mode(0o2755)], [EPERM; 4]);
        let make = |mode: u64| call(libc::SYS_mkdirat, [3, 0x7000, mode, 0, 0, 0]);
        assert_eq!([make(0o777), make(0o300)], [ALLOW, EPERM]);
        let mask = |mask: u64| call(libc::SYS_umask, [mask, 0, 0, 0, 0, 0]);
        assert_eq!([mask(0o077), mask(0o400), mask(0o777)], [ALLOW, EPERM, EPERM]);
    }

    #[test]
    fn the_filter_is_short() {
        assert!(program(ALL).len() < 900, "{}", program(ALL).len());
    }
}
