//! What the processes of a jail use together, as its first process can see it: where no control
//! group counts that.
//!
//! It looks through a view of the jail's processes that is its own, mounted nowhere, in which no
//! process can hide. Memory is counted as it is mapped, with the tables that map it: first what every
//! process has, which is quick and counts twice what two processes share; only if that is more than
//! they may have, the proportional share of each, which walks through its pages. What is in files,
//! what the kernel notes for each map, and what changes between two looks, escapes: this is best
//! effort, and called so.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::limits::Bytes;
use super::process_tree::is_stopped;
use super::syscalls;

/// Between two looks at what a program uses. In this time it can touch some hundred megabytes.
pub(super) const EVERY: Duration = Duration::from_millis(10);

/// How long the pages of all processes together are walked through.
const LOOKING: Duration = Duration::from_secs(1);

/// The number of the watching process, in its namespace.
const OURSELVES: libc::pid_t = 1;

/// A view of the processes of a namespace.
#[derive(Debug)]
pub(super) struct ProcMonitor {
    processes: OwnedFd,
}

impl ProcMonitor {
    /// A view of the caller's namespace.
    ///
    /// # Errors
    /// Where a new `/proc` may not be mounted.
    pub(super) fn open() -> io::Result<Self> {
        let files = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_create(&files)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let flags = FsMountFlags::FSMOUNT_CLOEXEC;
        let processes = rustix::mount::fsmount(&files, flags, attributes)?;
        Ok(Self { processes })
    }

    /// Whether the processes of the jail have more memory than `most`, and how much: for those
    /// that are not above it, at the most.
    pub(super) fn memory(&self, most: Bytes) -> (bool, Bytes) {
        let resident =
            self.sum(|pid| self.status(pid).map_or(0, |(memory, tables)| memory + tables));
        if resident <= most.0 {
            return (false, Bytes(resident));
        }
        let began = Instant::now();
        let share = |pid| {
            // A bot that maps its memory over and over is not looked at for ever.
            let share = if began.elapsed() < LOOKING { self.share(pid) } else { None };
            // Tables are a process's own. One page can be mapped so often that they take far more.
            self.status(pid).map_or(0, |(memory, tables)| share.unwrap_or(memory) + tables)
        };
        let shares = self.sum(share);
        (shares > most.0, Bytes(shares))
    }

    /// The processor time of every live process, with that of children which it waited for.
    pub(super) fn cpu(&self) -> Micros {
        let used = |pid| syscalls::cpu_time(pid) + self.children(pid).unwrap_or(Micros::ZERO);
        self.all().into_iter().fold(Micros::ZERO, |sum, pid| sum + used(pid))
    }

    /// Whether no thread of any process has its turn, or waits for one: each has stopped or ended,
    /// or sleeps where only the kernel wakes it, on its way to where it stops.
    pub(super) fn stand(&self) -> bool {
        self.all().into_iter().all(|pid| {
            let threads = self.numbers(&format!("{pid}/task"));
            // One that is gone stands.
            let stat = |thread| self.read_file(&format!("{pid}/task/{thread}/stat"));
            threads.into_iter().all(|thread| is_stopped(&stat(thread).unwrap_or_default()))
        })
    }

    /// Every process but this one.
    fn all(&self) -> Vec<libc::pid_t> {
        let mut all = self.numbers(".");
        all.retain(|pid| *pid != OURSELVES);
        all
    }

    /// The entries of a directory that are numbers.
    fn numbers(&self, directory: &str) -> Vec<libc::pid_t> {
        let here = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.processes, directory, here, Mode::empty());
        let Ok(entries) = opened.and_then(Dir::read_from) else { return Vec::new() };
        let parse = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok()?.parse().ok();
        entries.flatten().filter_map(parse).collect()
    }

    fn sum(&self, of: impl Fn(libc::pid_t) -> u64) -> u64 {
        self.all().into_iter().map(of).sum()
    }

    fn read(&self, pid: libc::pid_t, file: &str) -> Option<String> {
        self.read_file(&format!("{pid}/{file}"))
    }

    fn read_file(&self, path: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.processes, path, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        // A name in it may be no text.
        File::from(file).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What a process has of memory, and what the kernel has in tables to map it, in bytes. One that
    /// has ended has neither.
    fn status(&self, pid: libc::pid_t) -> Option<(u64, u64)> {
        let text = self.read(pid, "status")?;
        Some((kibibytes(&text, "VmRSS:")?, kibibytes(&text, "VmPTE:")?))
    }

    /// What a process has, each page divided by the number of those who have it.
    fn share(&self, pid: libc::pid_t) -> Option<u64> {
        kibibytes(&self.read(pid, "smaps_rollup")?, "Pss:")
    }

    /// The processor time of children that a process waited for.
    fn children(&self, pid: libc::pid_t) -> Option<Micros> {
        let text = self.read(pid, "stat")?;
        // Behind its name, which may hold anything, the first field is the third of all.
        let (_, fields) = text.rsplit_once(") ")?;
        let ticks = fields.split(' ').skip(13).take(2).map(str::parse::<i64>);
        let ticks: i64 = ticks.sum::<Result<_, _>>().ok()?;
        let each = 1_000_000 / i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
        Some(Micros(ticks * each))
    }
}

/// The amount in the line of `text` that begins with `name`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_found_by_name() {
        let text = "Name:\tVmPTE:\nVmRSS:\t    1024 kB\nVmPTE:\t      44 kB\n";
        assert_eq!(kibibytes(text, "VmRSS:"), Some(1 << 20));
        assert_eq!(kibibytes(text, "VmPTE:"), Some(44 << 10));
        assert_eq!(kibibytes("Name:\tx\n", "VmPTE:"), None);
    }
}
