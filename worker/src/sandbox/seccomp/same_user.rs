//! Calls by which a bot that is the worker's own user could reach what is not its own: files named by
//! a path, which Landlock does not protect from changes of mode, owner and times, and other processes' priorities.

use libc::c_long;

use super::{Action, ArgCheck, Condition, DENIED};

/// `fchmodat2`, which has the same number everywhere.
const FCHMODAT2: c_long = 452;

/// What changes a file that is named by a path, and Landlock does not mediate: refused where bots are
/// the worker's user. Through a descriptor a bot changes what it could open, its own files.
pub(super) const REACHES: &[c_long] = &[
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_truncate,
];

/// The same, of calls that only this kind of machine has.
#[cfg(target_arch = "x86_64")]
pub(super) const REACHES_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const REACHES_HERE: &[c_long] = &[];

/// The times of an open file alone: the path must be a null pointer, in both halves.
pub(super) const UTIMENSAT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Condition::HasAny(u32::MAX), DENIED)],
    otherwise: Action::CheckArg(&ArgCheck {
        argument: 1,
        cases: &[(Condition::Equals(0), Action::Allow)],
        otherwise: DENIED,
    }),
};

/// One process, or the caller; `libc` has it in two types.
const PRIO_PROCESS: u32 = 0;

/// A caller's own thread, by the number zero, and none by its own number. Where bots are the user of
/// their jail's first process they could slow that one down, which stops them and watches their
/// memory.
pub(super) const SETPRIORITY: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(
        Condition::Equals(PRIO_PROCESS),
        Action::CheckArg(&ArgCheck {
            argument: 1,
            cases: &[(Condition::Equals(0), Action::Allow)],
            otherwise: DENIED,
        }),
    )],
    otherwise: DENIED,
};

/// What an owner needs to read a directory, in order to remove what is in it.
const READABLE: u32 = 0o400;

/// Modes with which a directory can still be removed by its owner, and no program gains rights.
pub(super) const FCHMOD: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Condition::HasAny(0o6000), DENIED), (Condition::HasAny(READABLE), Action::Allow)],
    otherwise: DENIED,
};

/// The same of a new directory.
#[cfg(target_arch = "x86_64")]
pub(super) const MKDIR: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Condition::HasAny(READABLE), Action::Allow)],
    otherwise: DENIED,
};
pub(super) const MKDIRAT: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[(Condition::HasAny(READABLE), Action::Allow)],
    otherwise: DENIED,
};

/// The same of all that is made from then on.
pub(super) const UMASK: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(Condition::HasAny(READABLE), DENIED)],
    otherwise: Action::Allow,
};
