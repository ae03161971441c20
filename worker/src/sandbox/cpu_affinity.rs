//! Assigns processors to slots, and gives referees priority over bots.

use std::marker::PhantomData;

use rustix::thread::CpuSet;

use super::syscalls;

/// The processors of slot number `slot` (from 0) of `slots`. All slots get the same number of
/// processors, and no two slots share one. If there are fewer processors than slots, the list is
/// empty and every slot may use any processor.
///
/// The referees use the remaining processors. Even if none remain, a referee runs as soon as its
/// bot replies: see [`SlotThread::referee_priority`].
pub fn slot_cores(slot: usize, slots: usize) -> Vec<usize> {
    share(&thread_cores(), slot, slots)
}

/// The processors that the calling thread may use.
pub(crate) fn thread_cores() -> Vec<usize> {
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

/// While this value exists, its thread stays on the processors of its slot.
#[derive(Debug)]
pub struct SlotThread {
    previous_cores: CpuSet,
}

impl SlotThread {
    /// Binds the calling thread to `cores`, as far as that is allowed. A slot without its own
    /// processors binds nothing.
    pub fn bind(cores: &[usize]) -> Option<Self> {
        let previous_cores =
            rustix::thread::sched_getaffinity(None).ok().filter(|_| !cores.is_empty())?;
        rustix::thread::sched_setaffinity(None, &syscalls::cpu_set(cores)).ok()?;
        Some(Self { previous_cores })
    }

    /// Gives the thread priority on its processors, as far as that is allowed.
    pub fn referee_priority(&self) -> RefereePriority<'_> {
        // Without the privilege, continue without the priority.
        drop(syscalls::set_realtime(true));
        RefereePriority { _thread: PhantomData }
    }
}

impl Drop for SlotThread {
    fn drop(&mut self) {
        // Moving back is always allowed.
        let _moved_back = rustix::thread::sched_setaffinity(None, &self.previous_cores);
    }
}

/// While this value exists, its thread runs before every bot on the processors of its slot. So the
/// referee gets a reply at once, not after a spinning bot's time slice of up to three milliseconds.
///
/// A slot without its own processors gets no priority: a bot that keeps its referee busy would slow
/// down the bots of other slots. The priority needs a privilege that root has and containers may
/// lack. Without it, the kernel usually still prefers a thread that slept to a spinning one.
#[derive(Debug)]
pub struct RefereePriority<'a> {
    _thread: PhantomData<&'a SlotThread>,
}

impl RefereePriority<'_> {
    /// Whether this process may raise the priority of its threads.
    pub(super) fn is_allowed() -> bool {
        syscalls::set_realtime(true).and_then(|()| syscalls::set_realtime(false)).is_ok()
    }
}

impl Drop for RefereePriority<'_> {
    fn drop(&mut self) {
        // Lowering the priority is always allowed.
        drop(syscalls::set_realtime(false));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_leaves_its_slot_has_its_former_processors() {
        let before = thread_cores();
        let first = SlotThread::bind(&before[..1]).unwrap();
        assert_eq!(thread_cores(), before[..1]);
        drop(first);
        assert_eq!(thread_cores(), before);
        assert!(SlotThread::bind(&[]).is_none(), "a slot without processors binds nothing");
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
