//! Checks that killed processes leave nothing behind.

use std::fs;
use std::path::{Path, PathBuf};

use crate::deployment::Deployment;
use crate::support::files;
use crate::support::service::wait_until;

/// Makes orphans children of this process, so that [`children`] lists them.
pub(crate) fn adopt() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

/// Expects that no started process is alive. Zombies count as ended.
pub(crate) fn expect_no_processes() {
    wait_until("the last child is gone", || children().is_empty());
}

/// The living children of this process: their names.
fn children() -> Vec<String> {
    let own_pid = std::process::id().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let children = processes.filter_map(|process| {
        // The file is missing if the process ended in the meantime.
        let stat = fs::read_to_string(process.path().join("stat")).ok()?;
        // The name is in brackets and may contain any character.
        let (name, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?;
        (parent == own_pid && state != "Z").then(|| name.to_owned())
    });
    children.collect()
}

/// Expects that nothing of a deployment's workers is left on this machine, now that all of them
/// have ended: no report that was not acknowledged, no file, no control group.
pub(crate) fn expect_no_traces(deployment: &Deployment) {
    for number in 0..deployment.workers.len() {
        expect_none(&files(&deployment.spool(number).join("reports")));
        assert!(!deployment.spool(number).join("aside").exists(), "no report was damaged");
        expect_none(&files(&deployment.scratch(number)));
    }
    let ours: Vec<_> = deployment.pids.iter().map(|pid| format!("arbiter-{pid}-")).collect();
    let remaining: Vec<_> = groups(Path::new("/sys/fs/cgroup"))
        .into_iter()
        .filter(|group| ours.iter().any(|ours| group.to_string_lossy().contains(ours)))
        .collect();
    expect_none(&remaining);
}

fn expect_none(left: &[PathBuf]) {
    assert!(left.is_empty(), "{left:?}");
}

/// All control groups below one.
fn groups(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    below.flat_map(|entry| [vec![entry.path()], groups(&entry.path())].concat()).collect()
}
