//! Measures the total memory and processor time of a jail from `/proc`, for machines without
//! control groups. The jail's init runs it.
//!
//! It opens its own, unmounted instance of `/proc`, in which no process can hide. It counts mapped
//! memory and page tables. First it sums the resident memory of every process, which is quick and
//! counts shared pages twice. Only if the sum exceeds the limit, it sums the proportional set
//! sizes. For those the kernel visits all pages. It misses memory in files, the kernel's records of
//! maps, and changes between two checks. So the sandbox report lists this memory limit as best
//! effort.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use arbiter_games::Micros;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use super::jail_config::Bytes;
use super::process_tree::is_stopped;
use super::syscalls;

/// The interval between two checks. In this time a program can use some hundred megabytes.
pub(super) const INTERVAL: Duration = Duration::from_millis(10);

/// The time limit for measuring the proportional set sizes of all processes.
const MAX_MEASURE_TIME: Duration = Duration::from_secs(1);

/// The pid of init in its namespace.
const INIT_PID: libc::pid_t = 1;

/// An instance of `/proc` for one PID namespace.
#[derive(Debug)]
pub(super) struct ProcMonitor {
    processes: OwnedFd,
}

impl ProcMonitor {
    /// Opens `/proc` for the caller's namespace. It fails if the caller is not allowed to mount a
    /// new `/proc`.
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

    /// Whether the processes of the jail use more memory than `limit`, and how much they use. The
    /// amount is an upper bound unless the limit is exceeded.
    pub(super) fn memory(&self, limit: Bytes) -> (bool, Bytes) {
        let resident = self.sum_over_processes(|pid| {
            self.resident_memory(pid).map_or(0, |(memory, tables)| memory + tables)
        });
        if resident <= limit.0 {
            return (false, Bytes(resident));
        }
        let start_time = Instant::now();
        let share = |pid| {
            // A bot that maps its memory many times must not keep init busy for long.
            let share = if start_time.elapsed() < MAX_MEASURE_TIME {
                self.proportional_memory(pid)
            } else {
                None
            };
            // Page tables are private. If one page is mapped very often, they use far more memory
            // than the page.
            self.resident_memory(pid).map_or(0, |(memory, tables)| share.unwrap_or(memory) + tables)
        };
        let shares = self.sum_over_processes(share);
        (shares > limit.0, Bytes(shares))
    }

    /// The processor time of all live processes and of the children that they reaped.
    pub(super) fn cpu_time(&self) -> Micros {
        let total_time = |pid| {
            syscalls::cpu_time(pid) + self.reaped_children_cpu_time(pid).unwrap_or(Micros::ZERO)
        };
        self.pids().into_iter().fold(Micros::ZERO, |sum, pid| sum + total_time(pid))
    }

    /// Whether no thread of any process runs or is runnable: each has stopped or ended, or is in an
    /// uninterruptible sleep, after which it stops.
    pub(super) fn all_stopped(&self) -> bool {
        self.pids().into_iter().all(|pid| {
            let threads = self.numbers(&format!("{pid}/task"));
            // A thread that is gone counts as stopped.
            let stat = |thread| self.read_file(&format!("{pid}/task/{thread}/stat"));
            threads.into_iter().all(|thread| is_stopped(&stat(thread).unwrap_or_default()))
        })
    }

    /// All processes except init.
    fn pids(&self) -> Vec<libc::pid_t> {
        let mut pids = self.numbers(".");
        pids.retain(|pid| *pid != INIT_PID);
        pids
    }

    /// The entries of a directory that are numbers.
    fn numbers(&self, directory: &str) -> Vec<libc::pid_t> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.processes, directory, flags, Mode::empty());
        let Ok(entries) = opened.and_then(Dir::read_from) else { return Vec::new() };
        let parse = |entry: rustix::fs::DirEntry| entry.file_name().to_str().ok()?.parse().ok();
        entries.flatten().filter_map(parse).collect()
    }

    fn sum_over_processes(&self, measure: impl Fn(libc::pid_t) -> u64) -> u64 {
        self.pids().into_iter().map(measure).sum()
    }

    fn read(&self, pid: libc::pid_t, file: &str) -> Option<String> {
        self.read_file(&format!("{pid}/{file}"))
    }

    fn read_file(&self, path: &str) -> Option<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.processes, path, flags, Mode::empty()).ok()?;
        let mut bytes = Vec::new();
        // The file may contain a process name that is not UTF-8.
        File::from(file).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The resident memory of a process and its page tables, in bytes; none if it has ended.
    fn resident_memory(&self, pid: libc::pid_t) -> Option<(u64, u64)> {
        let text = self.read(pid, "status")?;
        Some((kibibytes(&text, "VmRSS:")?, kibibytes(&text, "VmPTE:")?))
    }

    /// The proportional set size of a process, in bytes: each page counts divided by its users.
    fn proportional_memory(&self, pid: libc::pid_t) -> Option<u64> {
        kibibytes(&self.read(pid, "smaps_rollup")?, "Pss:")
    }

    /// The processor time of the children that a process reaped.
    fn reaped_children_cpu_time(&self, pid: libc::pid_t) -> Option<Micros> {
        let text = self.read(pid, "stat")?;
        // The name may contain any characters. After it comes field 3 of the file.
        let (_, fields) = text.rsplit_once(") ")?;
        let times = fields.split(' ').skip(13).take(2).map(str::parse::<i64>);
        let ticks: i64 = times.sum::<Result<_, _>>().ok()?;
        let micros_per_tick =
            1_000_000 / i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
        Some(Micros(ticks * micros_per_tick))
    }
}

/// The amount in the line of `text` that starts with `name`, in bytes.
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
