//! Control groups: processor time and death of a whole process tree.
//!
//! `cpu.stat` and `cgroup.kill` are files of the cgroup v2 core: they work in any v2 hierarchy
//! one may write to, whatever controllers it has. The files are written directly.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arbiter_games::Micros;

use crate::fault::{Context as _, Fault};

/// How long a killed tree may take to leave its group.
const LEAVING: Duration = Duration::from_secs(5);

/// Between two attempts to remove a group whose processes are dying.
const RETRY: Duration = Duration::from_micros(200);

/// How the names of our groups begin; a process number and a count follow.
const PREFIX: &str = "arbiter-";

/// Makes names of groups unique within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The group under which ours are made.
#[derive(Debug)]
pub(super) struct CgroupRoot(PathBuf);

impl CgroupRoot {
    /// The group of this process in the v2 hierarchy, if groups can be made in it.
    pub(super) fn find() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (_, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
            (kind == "cgroup2").then(|| path.to_owned())
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let root = Self(Path::new(&mount).join(own));
        root.sweep();
        // Permission is proved, not inferred: a group is made, measured and removed.
        let probe = root.leaf().ok()?;
        probe.remove().ok()?;
        Some(root)
    }

    /// Kills and removes what processes that are gone left behind: one that was killed could not
    /// clean up.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
            let gone = |pid: &str| !Path::new("/proc").join(pid).exists();
            if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && gone(pid)) {
                drop(fs::write(entry.path().join("cgroup.kill"), "1"));
                // Its last processes may still be dying; the next one to come along finds it empty.
                drop(fs::remove_dir(entry.path()));
            }
        }
    }

    /// A new, empty group.
    pub(super) fn leaf(&self) -> Result<Cgroup, Fault> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.0.join(format!("{PREFIX}{}-{number}", std::process::id()));
        fs::create_dir(&path).fault("cannot make a control group")?;
        let open =
            |name, write: bool| File::options().read(!write).write(write).open(path.join(name));
        let opened = open("cpu.stat", false)
            .and_then(|cpu| Ok((cpu, open("cgroup.procs", true)?, open("cgroup.kill", true)?)));
        match opened {
            Ok((cpu, procs, kill)) => Ok(Cgroup { path, cpu, procs, kill }),
            Err(error) => {
                fs::remove_dir(&path).fault("cannot remove a control group")?;
                Err(Fault::new("cannot use a control group", error))
            }
        }
    }
}

/// The control group of one jail.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
    cpu: File,
    procs: File,
    kill: File,
}

impl Cgroup {
    /// The file into which a process writes `0` to join.
    pub(super) fn procs(&self) -> &File {
        &self.procs
    }

    /// Processor time of every process that ever was in the group.
    pub(super) fn cpu(&self) -> Micros {
        let mut buffer = [0; 64];
        let read = self.cpu.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..read]).unwrap_or_default();
        let usage = text.strip_prefix("usage_usec ").and_then(|rest| rest.lines().next());
        Micros(usage.and_then(|number| number.parse().ok()).unwrap_or(0))
    }

    /// Kills every process in the group, at once and together.
    pub(super) fn kill(&self) {
        // Fails only if the group is gone already, and then nothing is left to kill.
        drop((&self.kill).write_all(b"1"));
    }

    /// Kills what is left and removes the group.
    pub(super) fn remove(self) -> Result<(), Fault> {
        self.kill();
        let started = Instant::now();
        loop {
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                // The last of the dying has not been reaped yet.
                Err(error) if started.elapsed() > LEAVING => {
                    return Err(Fault::new("cannot remove a bot's control group", error));
                }
                Err(_) => thread::sleep(RETRY),
            }
        }
    }
}
