//! Which `madvise` advice a bot may give.

use super::{Action, Arg, ArgCheck, INVALID};

/// Allows the advice that runtimes and allocators use. Other advice affects pages that bots share,
/// is newer than this list, or makes the kernel process a whole range before it checks for a
/// signal. Such a call returns `EINVAL`, as on a kernel that does not support the advice. Runtimes
/// expect that.
pub(super) const MADVISE: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Arg::Equals(libc::MADV_NORMAL.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_RANDOM.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_SEQUENTIAL.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_WILLNEED.cast_unsigned()), Action::FakeSuccess),
        (Arg::Equals(libc::MADV_DONTNEED.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_FREE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_REMOVE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_DONTFORK.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_DOFORK.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_UNMERGEABLE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_HUGEPAGE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_NOHUGEPAGE.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_DONTDUMP.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_DODUMP.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_WIPEONFORK.cast_unsigned()), Action::Allow),
        (Arg::Equals(libc::MADV_KEEPONFORK.cast_unsigned()), Action::Allow),
        (Arg::Equals(24), Action::Allow), // MADV_DONTNEED_LOCKED
    ],
    otherwise: INVALID,
};
