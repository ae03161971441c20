//! Rules for bots that run as the worker's own user. They could change the mode, owner and times of
//! files by path, which Landlock does not prevent, and the priorities of other processes.

use libc::c_long;

use super::{Action, Arg, ArgCheck, DENY};

/// `fchmodat2`. The number is the same on all architectures.
const FCHMODAT2: c_long = 452;

/// Calls that change a file by path and that Landlock does not control. Through a descriptor a bot
/// can change only files that it could open: its own.
pub(super) const PATH_CALLS: &[c_long] = &[
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

/// The same, for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
pub(super) const PATH_CALLS_HERE: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const PATH_CALLS_HERE: &[c_long] = &[];

/// Allows a bot to change the times of an open file only: both halves of the path pointer must be
/// zero.
pub(super) const UTIMENSAT: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Arg::HasAny(u32::MAX), DENY)],
    otherwise: Action::CheckArg(&ArgCheck {
        argument: 1,
        cases: &[(Arg::Equals(0), Action::Allow)],
        otherwise: DENY,
    }),
};

/// Selects one process, or the caller. The type of this constant in `libc` depends on the platform.
const PRIO_PROCESS: u32 = 0;

/// Allows a bot to change the priority of the calling thread only, by the number 0. A bot with the
/// same user as init could slow down init, which stops bots and limits their memory.
pub(super) const SETPRIORITY: ArgCheck = ArgCheck {
    argument: 0,
    cases: &[(
        Arg::Equals(PRIO_PROCESS),
        Action::CheckArg(&ArgCheck {
            argument: 1,
            cases: &[(Arg::Equals(0), Action::Allow)],
            otherwise: DENY,
        }),
    )],
    otherwise: DENY,
};

/// The owner's read permission, needed to empty a directory.
const READABLE: u32 = 0o400;

/// Modes with which the owner can still remove a directory, and that are not set-user-ID or
/// set-group-ID.
pub(super) const FCHMOD: ArgCheck = ArgCheck {
    argument: 1,
    cases: &[(Arg::HasAny(0o6000), DENY), (Arg::HasAny(READABLE), Action::Allow)],
    otherwise: DENY,
};

/// The same for a new directory.
#[cfg(target_arch = "x86_64")]
pub(super) const MKDIR: ArgCheck =
    ArgCheck { argument: 1, cases: &[(Arg::HasAny(READABLE), Action::Allow)], otherwise: DENY };
pub(super) const MKDIRAT: ArgCheck =
    ArgCheck { argument: 2, cases: &[(Arg::HasAny(READABLE), Action::Allow)], otherwise: DENY };

/// The same for everything created later.
pub(super) const UMASK: ArgCheck =
    ArgCheck { argument: 0, cases: &[(Arg::HasAny(READABLE), DENY)], otherwise: Action::Allow };
