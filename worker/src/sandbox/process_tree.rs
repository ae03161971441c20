//! Finds the processes of a jail by their parents, for machines without control groups.

use std::fs;

use super::syscalls;

/// Moves all threads of these processes and their descendants to the lowest priority, on any
/// processor. Returns whether that worked for all.
///
/// Call it for killed processes only: they no longer fork. The init of a PID namespace adopts
/// orphans, so no process of a jail is missed.
pub(super) fn deprioritize(roots: &[libc::pid_t]) -> bool {
    let processes = with_descendants(roots);
    let threads = processes.iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task")));
    threads.map(syscalls::deprioritize).fold(true, |all, lowered| all & lowered)
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
    // The state follows the name, which may contain any characters.
    !stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'S', 'I']))
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
}
