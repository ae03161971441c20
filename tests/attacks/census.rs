//! Counts what an attack could leave on the machine and in the memory of services.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::support::machine::{descendants, groups};

/// The time limit of cleaning up on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between two counts.
const INTERVAL: Duration = Duration::from_millis(20);
/// The number of equal counts after which the machine is idle.
const STABLE_COUNTS: u32 = 25;
/// Memory that a worker may gain, in KiB, if a tenth of its memory is less. It uses 4 MiB and
/// gained at most 0.2 MiB.
const WORKER_SLACK: u64 = 1 << 10;
/// The same for a coordinator. It uses 7 MiB and gained at most 1.7 MiB: the gaps between used
/// blocks of its allocator differ after each upload of an archive.
const COORDINATOR_SLACK: u64 = 4 << 10;
/// The Postgres files in the data directory: they grow with every submission.
const POSTGRES: &str = "postgres";

/// Everything that belongs to a worker at one time.
#[derive(Debug)]
pub(crate) struct Census {
    /// The processes below it, by their names.
    processes: Vec<String>,
    groups: Vec<PathBuf>,
    /// The number of mounts that the worker and each process below it see.
    mounts: Vec<usize>,
    /// What is in its temporary directory, and in the data directory beside the database.
    files: Vec<PathBuf>,
    /// The number of open files of the worker.
    descriptors: usize,
}

/// Compares counts, not names: jails come and go.
impl PartialEq for Census {
    fn eq(&self, other: &Self) -> bool {
        self.processes == other.processes
            && self.groups.len() == other.groups.len()
            && self.mounts == other.mounts
            && self.files.len() == other.files.len()
            && self.descriptors == other.descriptors
    }
}

impl Census {
    /// Counts what the worker has now, and the files in these directories.
    fn take(worker: Pid, places: &[PathBuf]) -> Self {
        let worker = worker.as_raw_nonzero().get();
        let folder = Path::new("/sys/fs/cgroup");
        let groups = groups(folder, worker.unsigned_abs());
        let members = groups.iter().filter_map(|group| {
            let listed = fs::read_to_string(group.join("cgroup.procs")).ok()?;
            Some(listed.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        });
        // Orphans are no descendants, but they are in the control group.
        let mut pids: Vec<_> = members.flatten().chain(descendants(worker)).collect();
        pids.sort_unstable();
        pids.dedup();
        let mut mounts: Vec<_> = pids.iter().map(|pid| mounts(*pid)).collect();
        mounts.push(self::mounts(worker));
        mounts.sort_unstable();
        let mut processes: Vec<_> = pids.iter().map(|pid| name(*pid)).collect();
        processes.sort_unstable();
        let files = places.iter().flat_map(|place| below(place)).collect();
        let descriptors = fs::read_dir(format!("/proc/{worker}/fd")).map_or(0, Iterator::count);
        Self { processes, groups, mounts, files, descriptors }
    }

    /// Counts when the counts are stable: the launcher replaces a used jail asynchronously.
    pub(crate) fn at_rest(worker: Pid, places: &[PathBuf]) -> Self {
        let deadline = Instant::now() + TIMEOUT;
        let mut last = Self::take(worker, places);
        let mut equal = 0;
        while equal < STABLE_COUNTS {
            assert!(Instant::now() < deadline, "the worker does not become idle: {last:#?}");
            thread::sleep(INTERVAL);
            let now = Self::take(worker, places);
            equal = if now == last { equal + 1 } else { 0 };
            last = now;
        }
        last
    }

    /// Waits until the counts are as before. The kernel removes some objects asynchronously.
    pub(crate) fn expect(&self, attack: &str, worker: Pid, places: &[PathBuf]) {
        wait_for(attack, || {
            let now = Self::take(worker, places);
            if now == *self { Ok(()) } else { Err(format!("left: {now:#?}\nbefore: {self:#?}")) }
        });
    }
}

/// The name of a process; also of a zombie.
fn name(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// The number of mounts that a process sees.
fn mounts(pid: i32) -> usize {
    let listed = fs::read_to_string(format!("/proc/{pid}/mountinfo"));
    listed.unwrap_or_default().lines().count()
}

/// Everything below a directory, except for the Postgres files. Does not follow links.
fn below(place: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && entry.file_name() != POSTGRES {
                folders.push(entry.path());
            }
            files.push(entry.path());
        }
    }
    files
}

/// The anonymous memory of processes, in KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) worker: u64,
    pub(crate) coordinator: u64,
}

impl Memory {
    pub(crate) fn of(worker: Pid, coordinator: Pid) -> Self {
        Self { worker: anonymous(worker), coordinator: anonymous(coordinator) }
    }

    /// The maximum of both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            worker: self.worker.max(other.worker),
            coordinator: self.coordinator.max(other.coordinator),
        }
    }

    /// Waits until these processes have at most a tenth more memory than before.
    pub(crate) fn expect(self, attack: &str, worker: Pid, coordinator: Pid) -> Self {
        let mut now = self;
        wait_for(attack, || {
            now = Self::of(worker, coordinator);
            let worker = self.worker + WORKER_SLACK.max(self.worker / 10);
            let coordinator = self.coordinator + COORDINATOR_SLACK.max(self.coordinator / 10);
            if now.worker <= worker && now.coordinator <= coordinator {
                return Ok(());
            }
            Err(format!("more than a tenth more memory: {now}, before {self}"))
        });
        now
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} KiB, coordinator {} KiB", self.worker, self.coordinator)
    }
}

/// The anonymous memory of a process, in KiB.
fn anonymous(pid: Pid) -> u64 {
    let path = format!("/proc/{}/status", pid.as_raw_nonzero());
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Polls until `look` returns no error. Panics with the attack and the last error after the time
/// limit.
fn wait_for(attack: &str, mut look: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + TIMEOUT;
    while let Err(finding) = look() {
        assert!(Instant::now() < deadline, "after {attack}: {finding}");
        thread::sleep(INTERVAL);
    }
}
