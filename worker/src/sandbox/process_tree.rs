//! The processes of a jail, found by their parents, for machines without control groups.

use std::fs;

use super::syscalls;

/// Lets all threads of these processes and their descendants run on any processor, with the lowest
/// priority. Returns whether that worked for all.
///
/// Call it for killed processes only: they no longer fork. The init of a PID namespace adopts
/// orphans, so no process of a jail is missed.
pub(super) fn deprioritize(roots: &[libc::pid_t]) -> bool {
    let processes = with_descendants(roots);
    let threads = processes.iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task")));
    threads.map(syscalls::deprioritize).fold(true, |all, one| all & one)
}

/// These processes and all their descendants.
fn with_descendants(roots: &[libc::pid_t]) -> Vec<libc::pid_t> {
    let parents: Vec<_> =
        numbers("/proc").into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid);
        found.extend(children);
        next += 1;
    }
    found
}

/// Whether every thread in the process groups of these leaders is stopped. Processes that left their
/// group or lost their parent are missed: only a namespace or a control group knows those.
pub(super) fn groups_are_stopped(leaders: &[libc::pid_t]) -> bool {
    leaders.iter().all(|leader| group_is_stopped(*leader, *leader))
}

/// The same for a process and its descendants, in the process group of `leader`.
fn group_is_stopped(pid: libc::pid_t, leader: libc::pid_t) -> bool {
    numbers(&format!("/proc/{pid}/task")).into_iter().all(|thread| {
        let thread = format!("/proc/{pid}/task/{thread}");
        // A thread that is gone counts as stopped.
        let stat = fs::read(format!("{thread}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        if process_group(&stat) != Some(leader) {
            return true;
        }
        // Read the children only after their parent has stopped and forks no more.
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
    // The state follows the name, which may contain anything.
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
    // After the name, which may contain anything, come the state and the parent.
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_of_a_process_are_found() {
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        let parent = parent(own).unwrap();
        assert!(with_descendants(&[parent]).contains(&own));
        assert!(!with_descendants(&[own]).contains(&parent));
        assert!(numbers(&format!("/proc/{own}/task")).contains(&own));
    }
}
