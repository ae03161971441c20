//! Finds the processes of a jail by their parents, for machines without control groups.

use std::fs;
use std::time::Duration;

use super::syscalls;

/// All threads of these processes and their descendants.
///
/// Call it for killed processes only: they no longer fork. The init of a PID namespace adopts
/// orphans, so no process of a jail is missed.
pub(super) fn threads(roots: &[libc::pid_t]) -> Vec<libc::pid_t> {
    let processes = with_descendants(roots);
    processes.iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task"))).collect()
}

/// Moves threads to the lowest priority, on any processor. Returns whether that worked for all.
pub(super) fn deprioritize(threads: Vec<libc::pid_t>) -> bool {
    // Do not stop at the first failure.
    let lowered = threads.into_iter().map(syscalls::deprioritize);
    lowered.fold(true, |all, lowered| all & lowered)
}

/// Some threads at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadSample {
    /// Whether a thread runs or waits for a processor.
    is_runnable: bool,
    /// The processor time of the threads; none if the kernel does not tell it.
    cpu: Option<Duration>,
}

impl ThreadSample {
    /// Takes a sample of these threads. Those that are gone do not count.
    pub(super) fn take(threads: &[libc::pid_t]) -> Self {
        let mut sample = Self { is_runnable: false, cpu: Some(Duration::ZERO) };
        for thread in threads {
            let directory = format!("/proc/{thread}/task/{thread}");
            let Ok(stat) = fs::read(format!("{directory}/stat")) else { continue };
            sample.is_runnable |= state(&String::from_utf8_lossy(&stat)) == Some('R');
            sample.cpu = sample.cpu.and_then(|sum| Some(sum + cpu_time(&directory)?));
        }
        sample
    }

    /// How much of the time `elapsed` since the sample `before` these threads could use: the
    /// processor time that they got if one is ready to run, and otherwise all of it.
    pub(super) fn usable_time(&self, before: &Self, elapsed: Duration) -> Duration {
        match (self.is_runnable, self.cpu, before.cpu) {
            (true, Some(now), Some(before)) => now.saturating_sub(before).min(elapsed),
            _ => elapsed,
        }
    }
}

/// The processor time of the thread with this directory in `/proc`; none if the kernel does not
/// tell it.
fn cpu_time(directory: &str) -> Option<Duration> {
    match fs::read_to_string(format!("{directory}/schedstat")) {
        Ok(text) => Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?)),
        // It has ended meanwhile.
        Err(_) if !fs::exists(directory).unwrap_or(true) => Some(Duration::ZERO),
        Err(_) => None,
    }
}

/// These processes and all their descendants.
fn with_descendants(roots: &[libc::pid_t]) -> Vec<libc::pid_t> {
    let parents: Vec<_> =
        numbers("/proc").into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut processes = roots.to_vec();
    let mut next = 0;
    while let Some(parent) = processes.get(next).copied() {
        let children = parents.iter().filter(|(_, ppid)| *ppid == parent).map(|(pid, _)| *pid);
        processes.extend(children);
        next += 1;
    }
    processes
}

/// Whether every thread in the process groups of these leaders is stopped. It misses processes that
/// left their group or lost their parent: only a namespace or a control group lists those.
pub(super) fn groups_are_stopped(leaders: &[libc::pid_t]) -> bool {
    leaders.iter().all(|leader| group_is_stopped(*leader, *leader))
}

/// Whether every thread of a process and its descendants in the process group of `leader` is
/// stopped.
fn group_is_stopped(pid: libc::pid_t, leader: libc::pid_t) -> bool {
    numbers(&format!("/proc/{pid}/task")).into_iter().all(|thread| {
        let thread = format!("/proc/{pid}/task/{thread}");
        // A thread that is gone counts as stopped.
        let bytes = fs::read(format!("{thread}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&bytes);
        if process_group(&stat) != Some(leader) {
            return true;
        }
        // Read the children only after their parent has stopped: it can no longer fork.
        is_stopped(&stat)
            && fs::read_to_string(format!("{thread}/children"))
                .unwrap_or_default()
                .split_ascii_whitespace()
                .filter_map(|child| child.parse().ok())
                .all(|child| group_is_stopped(child, leader))
    })
}

/// Whether a thread with this `stat` has stopped or ended, or is in an uninterruptible sleep, after
/// which it stops.
pub(super) fn is_stopped(stat: &str) -> bool {
    !state(stat).is_some_and(|letter| "RSI".contains(letter))
}

/// The state of a thread with this `stat`, as a letter.
fn state(stat: &str) -> Option<char> {
    // The state follows the name, which may contain any characters.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// The process group of a thread with this `stat`.
fn process_group(stat: &str) -> Option<libc::pid_t> {
    // After the name come the state, the parent and the process group.
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<libc::pid_t> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The parent of a process; none if the process does not exist.
fn parent(pid: libc::pid_t) -> Option<libc::pid_t> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // The state and the parent follow the name, which may contain any characters.
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_of_a_process_are_found() {
        let own_pid = libc::pid_t::try_from(std::process::id()).unwrap();
        let parent = parent(own_pid).unwrap();
        assert!(with_descendants(&[parent]).contains(&own_pid));
        assert!(!with_descendants(&[own_pid]).contains(&parent));
        assert!(numbers(&format!("/proc/{own_pid}/task")).contains(&own_pid));
    }

    #[test]
    fn waiting_for_a_busy_processor_is_no_usable_time() {
        let sample = |is_runnable, millis| {
            let cpu = Some(Duration::from_millis(millis));
            ThreadSample { is_runnable, cpu }
        };
        let second = Duration::from_secs(1);
        let got = |after: ThreadSample| after.usable_time(&sample(true, 40), second).as_millis();
        assert_eq!(got(sample(true, 40)), 0, "it waits all the time");
        assert_eq!(got(sample(true, 45)), 5, "it gets a processor for 5 ms");
        assert_eq!(got(sample(true, 9_000)), 1_000, "more threads do not speed it up");
        assert_eq!(got(sample(true, 10)), 0, "threads have ended");
        assert_eq!(got(sample(false, 40)), 1_000, "it sleeps in the kernel");
        let unknown = ThreadSample { cpu: None, ..sample(true, 40) };
        assert_eq!(got(unknown), 1_000, "the kernel does not tell it");
    }

    #[test]
    fn a_spinning_thread_is_seen_to_run() {
        let own_pid = libc::pid_t::try_from(std::process::id()).unwrap();
        let before = ThreadSample::take(&threads(&[own_pid]));
        if before.cpu.is_none() {
            println!("skipped: this kernel does not tell the processor time of a thread");
            return;
        }
        let start_time = std::time::Instant::now();
        let mut after = before;
        while after.cpu.unwrap() < before.cpu.unwrap() + Duration::from_millis(1) {
            assert!(start_time.elapsed() < Duration::from_secs(60), "{after:?}");
            after = ThreadSample::take(&threads(&[own_pid]));
        }
        assert!(after.is_runnable);
    }
}
