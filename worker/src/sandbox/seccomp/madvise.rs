//! What a bot may advise the kernel about its memory.

use super::{Action, ArgCheck, Condition, UNKNOWN};

/// What runtimes and allocators advise. Other advice has the kernel work through a whole range before
/// it looks whether it is to stop, or reaches pages which bots share, or is newer than this list. It
/// fails as on a kernel that does not know it, which runtimes expect.
pub(super) const MADVISE: ArgCheck = ArgCheck {
    argument: 2,
    cases: &[
        (Condition::Equals(libc::MADV_NORMAL.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_RANDOM.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_SEQUENTIAL.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_WILLNEED.cast_unsigned()), Action::FakeSuccess),
        (Condition::Equals(libc::MADV_DONTNEED.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_FREE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_REMOVE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_DONTFORK.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_DOFORK.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_UNMERGEABLE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_HUGEPAGE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_NOHUGEPAGE.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_DONTDUMP.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_DODUMP.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_WIPEONFORK.cast_unsigned()), Action::Allow),
        (Condition::Equals(libc::MADV_KEEPONFORK.cast_unsigned()), Action::Allow),
        (Condition::Equals(24), Action::Allow), // MADV_DONTNEED_LOCKED
    ],
    otherwise: UNKNOWN,
};
