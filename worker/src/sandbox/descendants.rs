//! The processes below a jail's first one, as the worker sees them where no control group lists them.

use std::fs;

use super::sys;

/// Lets all threads of these processes and of all that descend from them run on any processor, after
/// everything else: whether all do.
///
/// It is for what was killed, which starts nothing any more. A process whose parent has ended belongs
/// to the first one of its namespace, so none of a jail is missed.
pub(super) fn step_back(roots: &[libc::pid_t]) -> bool {
    let processes = below(roots);
    let threads = processes.iter().flat_map(|pid| numbers(&format!("/proc/{pid}/task")));
    threads.map(sys::step_back).fold(true, |all, one| all & one)
}

/// These processes, and all that descend from them.
fn below(roots: &[libc::pid_t]) -> Vec<libc::pid_t> {
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

/// Whether every thread in the process groups of these leaders stands. What left its group escapes, and
/// so does what has lost its parent: nothing but a namespace or a control group knows those.
pub(super) fn groups_stand(leaders: &[libc::pid_t]) -> bool {
    leaders.iter().all(|leader| group_stands(*leader, *leader))
}

/// The same of a process and what descends from it, in the group of `leader`.
fn group_stands(pid: libc::pid_t, leader: libc::pid_t) -> bool {
    numbers(&format!("/proc/{pid}/task")).into_iter().all(|thread| {
        let thread = format!("/proc/{pid}/task/{thread}");
        // One that is gone stands.
        let stat = fs::read(format!("{thread}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        if group(&stat) != Some(leader) {
            return true;
        }
        // Children are read when their parent stands, which starts no more of them.
        stands(&stat)
            && fs::read_to_string(format!("{thread}/children"))
                .unwrap_or_default()
                .split_ascii_whitespace()
                .filter_map(|child| child.parse().ok())
                .all(|child| group_stands(child, leader))
    })
}

/// Whether a thread with this `stat` has stopped or ended, or sleeps where only the kernel wakes it, on
/// its way to where it stops.
pub(super) fn stands(stat: &str) -> bool {
    // Behind its name, which may hold anything.
    !stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with(['R', 'S', 'I']))
}

/// The process group of a thread with this `stat`.
fn group(stat: &str) -> Option<libc::pid_t> {
    // Behind its name come its state, its parent and its group.
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// The entries of a directory that are numbers.
fn numbers(directory: &str) -> Vec<libc::pid_t> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The parent of a process, if that is there.
fn parent(pid: libc::pid_t) -> Option<libc::pid_t> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    // Behind its name, which may hold anything, come its state and its parent.
    text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_children_are_found() {
        let own = libc::pid_t::try_from(std::process::id()).unwrap();
        let parent = parent(own).unwrap();
        assert!(below(&[parent]).contains(&own));
        assert!(!below(&[own]).contains(&parent));
        assert!(numbers(&format!("/proc/{own}/task")).contains(&own));
    }
}
