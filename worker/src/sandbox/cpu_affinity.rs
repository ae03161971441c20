//! Assigns processors to slots, and gives referees priority over bots.

use rustix::thread::CpuSet;

use super::syscalls;

/// The processors of slot number `slot` (from 0) of `slots`. All slots get the same number of
/// processors, and no two slots share one. If there are fewer processors than slots, the list is
/// empty and every slot may use any processor.
///
/// The referees use the remaining processors. Even if none remain, a referee runs as soon as its
/// bot replies: see [`RefereePriority`].
pub fn slot_cores(slot: usize, slots: usize) -> Vec<usize> {
    share(&allowed(), slot, slots)
}

/// The processors that this process may use.
fn allowed() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

fn share(cores: &[usize], slot: usize, slots: usize) -> Vec<usize> {
    let per_slot = cores.len() / slots.max(1);
    if per_slot == 0 {
        return Vec::new();
    }
    cores.chunks(per_slot).nth(slot).unwrap_or_default().to_vec()
}

/// While this value exists, its thread stays on the processors of its slot and runs before every
/// bot there. So the referee gets a reply at once, not after a spinning bot's time slice of up to
/// three milliseconds.
///
/// A slot without its own processors gets no priority: a bot that keeps its referee busy would slow
/// down the bots of other slots. The priority needs a privilege that root has and containers may
/// lack. Without it, the kernel usually still prefers a thread that slept to a spinning one.
#[derive(Debug)]
pub struct RefereePriority {
    previous_cores: CpuSet,
}

impl RefereePriority {
    /// Gives the calling thread priority on `cores`, as far as that is allowed.
    pub fn take(cores: &[usize]) -> Option<Self> {
        let previous_cores =
            rustix::thread::sched_getaffinity(None).ok().filter(|_| !cores.is_empty())?;
        rustix::thread::sched_setaffinity(None, &syscalls::cpu_set(cores)).ok()?;
        // Without the privilege, continue without the priority.
        drop(syscalls::set_realtime(true));
        Some(Self { previous_cores })
    }

    /// Whether this process may raise the priority of its threads.
    pub(super) fn is_allowed() -> bool {
        syscalls::set_realtime(true).and_then(|()| syscalls::set_realtime(false)).is_ok()
    }
}

impl Drop for RefereePriority {
    fn drop(&mut self) {
        // Lowering the priority and moving back are always allowed.
        drop(syscalls::set_realtime(false));
        let _moved_back = rustix::thread::sched_setaffinity(None, &self.previous_cores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_the_priority_restores_the_processors() {
        let before = allowed();
        let first = RefereePriority::take(&before[..1]).unwrap();
        assert_eq!(allowed(), before[..1]);
        drop(first);
        assert_eq!(allowed(), before);
        assert!(RefereePriority::take(&[]).is_none(), "a slot without processors gets none");
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
