//! Which processors belong to which slot.

use rustix::thread::CpuSet;

use super::syscalls;

/// The processors of slot number `slot` (from 0) where there are so many `slots`: all slots have
/// as many, and no two share one. Where there are fewer processors than slots nothing can be
/// promised, and every slot has all of them: the list is empty, which means any.
///
/// What is left over stays with the referees. On a machine whose processors are all given away a
/// referee still runs when its bot answers: see [`RefereePriority`].
pub fn slot_cores(slot: usize, slots: usize) -> Vec<usize> {
    share(&allowed(), slot, slots)
}

/// The processors that this process may use.
fn allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

fn share(cores: &[usize], slot: usize, slots: usize) -> Vec<usize> {
    let each = cores.len() / slots.max(1);
    if each == 0 { Vec::new() } else { cores.chunks(each).nth(slot).unwrap_or_default().to_vec() }
}

/// While this lives its thread stays on the processors of its slot, and there goes before every
/// bot: an answer is looked at when it comes, and not when some bot that spins has had its turn,
/// which is up to three milliseconds later.
///
/// A slot that owns no processors gets nothing of the kind: a bot that keeps its referee busy would
/// take from its neighbours. To go first takes a right that root has, and containers may lack;
/// without it the kernel still prefers a thread that slept to one that spins, most of the time.
#[derive(Debug)]
pub struct RefereePriority {
    before: CpuSet,
}

impl RefereePriority {
    /// Gives the calling thread precedence on `cores`, as far as that may be.
    pub fn take(cores: &[usize]) -> Option<Self> {
        let before = rustix::thread::sched_getaffinity(None).ok().filter(|_| !cores.is_empty())?;
        rustix::thread::sched_setaffinity(None, &syscalls::cpu_set(cores)).ok()?;
        // What else may not be is done without.
        drop(syscalls::set_realtime(true));
        Some(Self { before })
    }

    /// Whether this process may put its threads before others.
    pub(super) fn may_go_first() -> bool {
        syscalls::set_realtime(true).and_then(|()| syscalls::set_realtime(false)).is_ok()
    }
}

impl Drop for RefereePriority {
    fn drop(&mut self) {
        // Who may go first may go later, and where it was before.
        drop(syscalls::set_realtime(false));
        let _moved_back = rustix::thread::sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_is_given_back() {
        let before = allowed();
        let first = RefereePriority::take(&before[..1]).unwrap();
        assert_eq!(allowed(), before[..1]);
        drop(first);
        assert_eq!(allowed(), before);
        assert!(RefereePriority::take(&[]).is_none(), "nobody owns every processor");
    }

    #[test]
    fn slots_share_no_processor() {
        assert_eq!(share(&[0, 2, 4, 6, 8], 0, 2), [0, 2]);
        assert_eq!(share(&[0, 2, 4, 6, 8], 1, 2), [4, 6]);
        assert_eq!(share(&[0, 1], 1, 2), [1]);
        assert_eq!(share(&[0, 1], 2, 3), [0; 0]);
        assert_eq!(share(&[0, 1], 0, 0), [0, 1]);
    }
}
