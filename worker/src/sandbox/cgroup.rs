//! Control groups: they limit, measure, freeze and kill a whole process tree.
//!
//! There are three kinds of machines. With controllers in the v2 hierarchy, v2 does everything.
//! With controllers in v1 hierarchies, an empty v2 hierarchy beside them can still measure, freeze
//! and kill: those are core files of v2. With v1 alone, `cpuacct` measures and the v1 freezer
//! freezes, more slowly. This module reads and writes the files of the kernel directly.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arbiter_games::Micros;
use rustix::process::Signal;
use tracing::warn;

use super::cgroup_root::{self, CgroupRoot, CgroupRoots};
use super::jail_config::{Bytes, Limits};
use super::polling::poll_until;
use super::{ipc, process_tree};
use crate::fault::{Context as _, Fault};

/// How long to wait for processes of workers that have died.
const STALE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to repeat a kill: processes may have forked during the last one.
const KILL_TIMEOUT: Duration = Duration::from_millis(100);

/// A memory peak counts as at the limit if it is at most this fraction (1/n) below it: the kernel
/// charges memory to each processor in batches.
const BATCH_FRACTION: u64 = 16;

/// The prefix of every group's name, before the pid of the process that created it.
const PREFIX: &str = "arbiter-";

/// Makes group names unique within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The limit of a bot's TCP socket buffers where v1 counts them separately, in bytes.
const TCP_BUFFERS: u64 = 16 << 20;

/// The interface version of a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

/// The controllers that a jail needs, by their v1 names.
const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpuacct", "freezer"];

/// Which hierarchies may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CgroupHierarchies {
    /// All that exist.
    #[default]
    All,
    /// Version 1 only, as on a machine without version 2.
    V1,
    /// None, as on a machine that gives us no access.
    None,
}

/// The parents of new groups, by purpose. Several may be the same.
#[derive(Clone, Debug)]
pub(super) struct CgroupParents {
    pub(super) memory: Option<CgroupRoot>,
    pub(super) processes: Option<CgroupRoot>,
    pub(super) cpu: Option<CgroupRoot>,
    pub(super) freezer: Option<CgroupRoot>,
}

impl CgroupParents {
    /// Finds the groups in which this process may create others. It tests that by creating and
    /// removing groups.
    pub(super) fn find(hierarchies: CgroupHierarchies) -> Self {
        let mut roots = cgroup_root::find();
        remove_stale(&roots);
        if hierarchies != CgroupHierarchies::All {
            roots.v2 = None;
        }
        if hierarchies == CgroupHierarchies::None {
            roots.v1.clear();
        }
        let usable = |root: &CgroupRoot| is_usable(&root.path).then(|| root.clone());
        let v2 = roots.v2.as_ref().and_then(usable);
        let choose = |controller: &str, is_core: bool| {
            let in_v2 = v2.as_ref().filter(|v2| is_core || v2.has(controller)).cloned();
            in_v2.or_else(|| roots.v1_with(controller).as_ref().and_then(usable))
        };
        let [memory, processes, cpu, freezer] = CONTROLLERS;
        Self {
            memory: choose(memory, false),
            processes: choose(processes, false),
            cpu: choose(cpu, true),
            freezer: choose(freezer, true),
        }
    }

    /// The different parents.
    fn paths(&self) -> Vec<&Path> {
        let all = [&self.memory, &self.processes, &self.cpu, &self.freezer];
        let mut paths: Vec<_> = all.into_iter().flatten().map(|root| &*root.path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Creates an empty group with these limits.
    pub(super) fn create(&self, limits: &Limits) -> Result<Cgroup, Fault> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let mut cgroup = Cgroup::default();
        if let Err(error) = self.create_named(&name, limits, &mut cgroup) {
            // Report the first error. The group is still empty, so its removal should work.
            drop(cgroup.remove());
            return Err(Fault::new("cannot create a control group", error));
        }
        Ok(cgroup)
    }

    fn create_named(&self, name: &str, limits: &Limits, cgroup: &mut Cgroup) -> io::Result<()> {
        for parent in self.paths() {
            let path = parent.join(name);
            fs::create_dir(&path)?;
            cgroup.paths.push(path);
        }
        if let Some(root) = &self.memory {
            let path = root.path.join(name);
            limit_memory(&path, root.version, limits.memory)?;
            let file = match root.version {
                CgroupVersion::V1 => "memory.oom_control",
                CgroupVersion::V2 => "memory.events",
            };
            let events = File::open(path.join(file))?;
            cgroup.memory = Some(Memory { version: root.version, path, events });
        }
        if let Some(root) = &self.processes {
            // One more for the jail's init.
            let limit = (limits.processes + 1).to_string();
            fs::write(root.path.join(name).join("pids.max"), limit)?;
        }
        if let Some(root) = &self.cpu {
            let file = if root.version == CgroupVersion::V2 { "cpu.stat" } else { "cpuacct.usage" };
            cgroup.cpu = Some((root.version, File::open(root.path.join(name).join(file))?));
        }
        if let Some(root) = &self.freezer {
            cgroup.freezer = Some(Freezer::open(root.version, &root.path.join(name))?);
        }
        Ok(())
    }
}

/// Removes the groups of workers that were killed before they could remove them.
fn remove_stale(roots: &CgroupRoots) {
    let v1_roots = CONTROLLERS.into_iter().filter_map(|controller| roots.v1_with(controller));
    let mut stale = Vec::new();
    for root in v1_roots.chain(roots.v2.clone()) {
        let entries = fs::read_dir(root.path).into_iter().flatten().flatten();
        let groups = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_stale));
        stale.extend(groups.map(|entry| entry.path()).filter(|path| !has_foreign_processes(path)));
    }
    for path in &stale {
        kill_all_in(path);
        // In the v1 freezer even killed processes cannot exit.
        drop(write(&path.join("freezer.state"), ipc::THAWED));
    }
    // Wait for all groups together, so that the waits do not add up.
    let mut clear = || {
        stale.retain(|path| {
            kill_all_in(path);
            // Another worker may have removed it first.
            fs::remove_dir(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        Ok(stale.is_empty())
    };
    drop(poll_until(STALE_TIMEOUT, &mut clear));
    for path in &stale {
        warn!(group = %path.display(), "processes of an earlier worker cannot be killed");
    }
}

/// Whether a group of this name belongs to a worker that no longer exists.
fn is_stale(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let owner = owner.and_then(|owner| owner.parse::<u32>().ok());
    owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
}

/// Whether the group has processes of another PID namespace. This process cannot see their workers.
fn has_foreign_processes(path: &Path) -> bool {
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    processes.lines().any(|pid| pid == "0")
}

/// Whether this process can create groups at `path` and move processes into them.
fn is_usable(path: &Path) -> bool {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let probe = path.join(format!("{PREFIX}{}-{number}", std::process::id()));
    let can_create = fs::create_dir(&probe).is_ok();
    let can_add =
        can_create && File::options().write(true).open(probe.join("cgroup.procs")).is_ok();
    can_create && fs::remove_dir(&probe).is_ok() && can_add
}

fn limit_memory(path: &Path, version: CgroupVersion, limit: Bytes) -> io::Result<()> {
    let limit = limit.0.to_string();
    let (memory_file, swap_file, swap_limit) = match version {
        CgroupVersion::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", &*limit),
        CgroupVersion::V2 => ("memory.max", "memory.swap.max", "0"),
    };
    fs::write(path.join(memory_file), &limit)?;
    // A kernel that does not count swap has no such file. Then swapped memory is not counted.
    if path.join(swap_file).exists() {
        fs::write(path.join(swap_file), swap_limit)?;
    }
    // v1 counts TCP buffers separately.
    let network = path.join("memory.kmem.tcp.limit_in_bytes");
    if version == CgroupVersion::V1 && network.exists() {
        fs::write(network, TCP_BUFFERS.to_string())?;
    }
    Ok(())
}

/// Freezes and thaws a group.
#[derive(Debug)]
struct Freezer {
    version: CgroupVersion,
    /// The file to write the requested state to.
    control: File,
    /// The file to read the actual state from.
    state: File,
}

impl Freezer {
    fn open(version: CgroupVersion, path: &Path) -> io::Result<Self> {
        let (control, state) = match version {
            CgroupVersion::V1 => ("freezer.state", "freezer.state"),
            CgroupVersion::V2 => ("cgroup.freeze", "cgroup.events"),
        };
        let control = File::options().write(true).open(path.join(control))?;
        Ok(Self { version, control, state: File::open(path.join(state))? })
    }

    fn is_frozen(&self) -> bool {
        let mut buffer = [0; 64];
        let read = self.state.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..read]).unwrap_or_default();
        match self.version {
            CgroupVersion::V1 => text.trim() == "FROZEN",
            CgroupVersion::V2 => text.contains("frozen 1"),
        }
    }

    fn freeze(&self) -> io::Result<()> {
        (&self.control).write_all(if self.version == CgroupVersion::V1 { b"FROZEN" } else { b"1" })
    }

    fn thaw(&self) -> io::Result<()> {
        (&self.control).write_all(if self.version == CgroupVersion::V1 {
            ipc::THAWED
        } else {
            b"0"
        })
    }
}

/// The control group of one jail, in all hierarchies that it needs.
#[derive(Debug, Default)]
pub(super) struct Cgroup {
    paths: Vec<PathBuf>,
    memory: Option<Memory>,
    cpu: Option<(CgroupVersion, File)>,
    freezer: Option<Freezer>,
}

/// The files that count the memory of a group.
///
/// When memory runs out, the kernel kills only the largest process, because v1 cannot kill a whole
/// group. So the jail's init survives in both versions, and a bot that is executed once per
/// decision can be executed again. The worker kills the remaining processes.
#[derive(Debug)]
struct Memory {
    version: CgroupVersion,
    path: PathBuf,
    /// The file with the number of killed processes.
    events: File,
}

impl Cgroup {
    /// Moves a process into the group.
    pub(super) fn add_process(&self, pid: libc::pid_t) -> Result<(), Fault> {
        let number = pid.to_string();
        for path in &self.paths {
            fs::write(path.join("cgroup.procs"), &number)
                .fault("cannot move a process into its control group")?;
        }
        Ok(())
    }

    /// The `cgroup.procs` files, into which a process writes `0` to join.
    pub(super) fn procs_files(&self) -> Result<Vec<File>, Fault> {
        let open = |path: &PathBuf| File::options().write(true).open(path.join("cgroup.procs"));
        self.paths.iter().map(open).collect::<Result<_, _>>().fault("cannot open a control group")
    }

    /// The processor time of all processes that were ever in the group, if it is measured.
    pub(super) fn cpu_time(&self) -> Option<Micros> {
        let (version, file) = self.cpu.as_ref()?;
        let mut buffer = [0; 64];
        let read = file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..read]).ok()?;
        match version {
            CgroupVersion::V1 => text.trim().parse().ok().map(|nanos: i64| Micros(nanos / 1000)),
            CgroupVersion::V2 => {
                let usage = text.strip_prefix("usage_usec ")?.lines().next()?;
                usage.parse().ok().map(Micros)
            }
        }
    }

    /// Whether the group can be frozen.
    pub(super) fn can_freeze(&self) -> bool {
        self.freezer.is_some()
    }

    /// Freezes the group. From now on no thread in it runs in user mode: running ones are
    /// interrupted, others stop before they return to user mode. Until the group
    /// [is frozen](Self::is_frozen), threads may still run in the kernel.
    pub(super) fn freeze(&self) -> Result<(), Fault> {
        self.freezer.as_ref().map_or(Ok(()), Freezer::freeze).fault("cannot freeze a bot")
    }

    /// Whether all of the group is frozen; true if it cannot be frozen.
    pub(super) fn is_frozen(&self) -> bool {
        self.freezer.as_ref().is_none_or(Freezer::is_frozen)
    }

    /// Thaws the group.
    pub(super) fn thaw(&self) -> Result<(), Fault> {
        self.freezer.as_ref().map_or(Ok(()), Freezer::thaw).fault("cannot thaw a bot")
    }

    /// The peak of memory, without the page cache of system files; none if it is not measured. It
    /// subtracts the current size of the page cache.
    pub(super) fn peak_memory(&self) -> Option<Bytes> {
        let Memory { version, path, .. } = self.memory.as_ref()?;
        let (peak_file, cache_key, shared_key) = match version {
            CgroupVersion::V1 => ("memory.max_usage_in_bytes", "total_cache", "total_shmem"),
            CgroupVersion::V2 => ("memory.peak", "file", "shmem"),
        };
        let peak: u64 = fs::read_to_string(path.join(peak_file)).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(path.join("memory.stat")).ok()?;
        let cache =
            lookup(&stat, cache_key)?.saturating_sub(lookup(&stat, shared_key).unwrap_or(0));
        Some(Bytes(peak.saturating_sub(cache)))
    }

    /// Whether memory is limited and counted.
    pub(super) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// How many processes of the group were killed because the group or the machine ran out of
    /// memory; none if memory is not counted.
    pub(super) fn oom_kills(&self) -> Option<u64> {
        let Memory { events, .. } = self.memory.as_ref()?;
        let mut buffer = [0; 256];
        let read = events.read_at(&mut buffer, 0).ok()?;
        lookup(std::str::from_utf8(&buffer[..read]).ok()?, "oom_kill")
    }

    /// Whether the group ever reached its memory limit; true if that is unknown.
    pub(super) fn reached_memory_limit(&self) -> bool {
        let Some(Memory { version, path, .. }) = &self.memory else { return true };
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let number = |file: &str| -> Option<u64> { read(file).trim().parse().ok() };
        match version {
            // Newer kernels no longer count failures, so compare the peak with the limit.
            CgroupVersion::V1 => {
                let peak = number("memory.max_usage_in_bytes");
                let limit = number("memory.limit_in_bytes");
                peak.zip(limit).is_none_or(|(peak, limit)| peak >= limit - limit / BATCH_FRACTION)
            }
            CgroupVersion::V2 => {
                lookup(&read("memory.events"), "oom").is_none_or(|count| count > 0)
            }
        }
    }

    /// Whether the group is at its limit of processes; none if they are not counted.
    pub(super) fn reached_process_limit(&self) -> Option<bool> {
        let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        self.paths.iter().find_map(|path| {
            let limit = number(&path.join("pids.max"))?;
            Some(number(&path.join("pids.current"))? >= limit)
        })
    }

    /// Whether the group has no processes.
    pub(super) fn is_empty(&self) -> bool {
        let is_empty = |path: &PathBuf| match fs::read(path.join("cgroup.procs")) {
            Ok(processes) => processes.is_empty(),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        self.paths.iter().all(is_empty)
    }

    /// Kills every process in the group.
    pub(super) fn kill(&self) {
        for path in &self.paths {
            kill_all_in(path);
        }
        self.thaw_killed();
        for path in &self.paths {
            kill_until_empty(path, KILL_TIMEOUT);
        }
    }

    /// Lets killed processes exit: the v1 freezer keeps even killed processes frozen.
    pub(super) fn thaw_killed(&self) {
        if self.freezer.as_ref().is_some_and(|freezer| freezer.version == CgroupVersion::V1) {
            drop(self.thaw());
        }
    }

    /// The file to write [`ipc::THAWED`] to so that killed processes can exit; none if they can
    /// exit while frozen.
    pub(super) fn thaw_file(&self) -> io::Result<Option<File>> {
        match &self.freezer {
            Some(Freezer { version: CgroupVersion::V1, control, .. }) => {
                control.try_clone().map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Removes the group. It fails while the group has processes.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        while let Some(path) = self.paths.last() {
            match fs::remove_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => drop(self.paths.pop()),
            }
        }
        Ok(())
    }

    /// Moves the dying processes of the group to the lowest priority, on any processor. Returns
    /// whether that worked for all of them; false without a group.
    pub(super) fn deprioritize(&self) -> bool {
        let mut is_idle = false;
        for path in &self.paths {
            // Only v2 has this file, and only with the `cpu` controller.
            is_idle |= write(&path.join("cpu.idle"), b"1").is_ok();
        }
        let all_lowered = self.threads().is_some_and(process_tree::deprioritize);
        is_idle || all_lowered
    }

    /// The threads in the group; none without a group.
    pub(super) fn threads(&self) -> Option<Vec<libc::pid_t>> {
        let path = self.paths.first()?;
        let files = ["cgroup.threads", "tasks"].map(|file| fs::read_to_string(path.join(file)));
        let lines = files.iter().flatten().flat_map(|text| text.lines());
        Some(lines.filter_map(|thread| thread.parse().ok()).collect())
    }
}

/// Writes to an existing file.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(bytes)
}

/// The number after `name` in a text that has one name and number on each line.
fn lookup(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name).and_then(|(_, number)| number.trim().parse().ok())
}

/// Kills every process in the group at `path`: all at once if the kernel can, else one by one.
/// Returns whether it killed any one by one. Those may have forked meanwhile.
fn kill_all_in(path: &Path) -> bool {
    if fs::write(path.join("cgroup.kill"), "1").is_ok() {
        return false;
    }
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let numbers = processes.lines().filter_map(|line| line.parse().ok());
    let pids = numbers.filter_map(rustix::process::Pid::from_raw);
    // Some may have ended in the meantime.
    let kills = pids.filter(|pid| rustix::process::kill_process(*pid, Signal::KILL).is_ok());
    kills.count() > 0
}

/// Kills all processes in the group at `path` until it is empty, for at most `limit`.
fn kill_until_empty(path: &Path, limit: Duration) {
    drop(poll_until(limit, || Ok(!kill_all_in(path))));
}
