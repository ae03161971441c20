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
