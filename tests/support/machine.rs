//! Processes and control groups that programs may leave on the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// All descendants of a process.
pub(crate) fn descendants(parent: i32) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let number: i32 = entry.unwrap().file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((number, parent))
    });
    let all: Vec<(i32, i32)> = all.collect();
    let mut tree = vec![parent];
    let mut index = 0;
    while index < tree.len() {
        let children = all.iter().filter(|(_, parent)| *parent == tree[index]);
        let children: Vec<_> = children.map(|(number, _)| *number).collect();
        tree.extend(children);
        index += 1;
    }
    tree.split_off(1)
}

/// Control groups of the process `worker` below `folder`.
pub(crate) fn groups(folder: &Path, worker: u32) -> Vec<PathBuf> {
    let mut groups_found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(&format!("arbiter-{worker}-")) {
            groups_found.push(path);
        } else {
            groups_found.extend(groups(&path, worker));
        }
    }
    groups_found
}
