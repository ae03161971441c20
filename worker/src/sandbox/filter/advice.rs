//! What a bot may advise the kernel about its memory.

use super::{Case, Question, UNKNOWN, Verdict};

/// What runtimes and allocators advise. Other advice has the kernel work through a whole range before
/// it looks whether it is to stop, or reaches pages which bots share, or is newer than this list. It
/// fails as on a kernel that does not know it, which runtimes expect.
pub(super) const MADVISE: Question = Question {
    argument: 2,
    cases: &[
        (Case::Is(libc::MADV_NORMAL.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_RANDOM.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_SEQUENTIAL.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_WILLNEED.cast_unsigned()), Verdict::Pretend),
        (Case::Is(libc::MADV_DONTNEED.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_FREE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_REMOVE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_DONTFORK.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_DOFORK.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_UNMERGEABLE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_HUGEPAGE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_NOHUGEPAGE.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_DONTDUMP.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_DODUMP.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_WIPEONFORK.cast_unsigned()), Verdict::Allow),
        (Case::Is(libc::MADV_KEEPONFORK.cast_unsigned()), Verdict::Allow),
        (Case::Is(24), Verdict::Allow), // MADV_DONTNEED_LOCKED
    ],
    otherwise: UNKNOWN,
};
