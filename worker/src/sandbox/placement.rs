//! Which processors belong to which slot.

use rustix::thread::CpuSet;

/// The processors of slot number `slot` (from 0) where there are so many `slots`: all slots have
/// as many, and no two share one. Where there are fewer processors than slots nothing can be
/// promised, and every slot has all of them: the list is empty, which means any.
///
/// What is left over stays with the referees. On a machine whose processors are all given away a
/// referee's thread still runs when its bot answers, since a thread that slept goes before one
/// that spins.
pub fn cores_of(slot: usize, slots: usize) -> Vec<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_share_no_processor() {
        assert_eq!(share(&[0, 2, 4, 6, 8], 0, 2), [0, 2]);
        assert_eq!(share(&[0, 2, 4, 6, 8], 1, 2), [4, 6]);
        assert_eq!(share(&[0, 1], 1, 2), [1]);
        assert_eq!(share(&[0, 1], 2, 3), [0; 0]);
        assert_eq!(share(&[0, 1], 0, 0), [0, 1]);
    }
}
