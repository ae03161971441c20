//! Control groups: what a whole process tree may use, what it used, its sleep and its death.
//!
//! There are three kinds of machine. Where the v2 hierarchy has its controllers it does
//! everything. Where v1 hierarchies hold the controllers, an empty v2 hierarchy beside them can
//! still measure, freeze and kill, since those are files of its core. Where there is v1 alone,
//! `cpuacct` measures and the old freezer freezes, more slowly. The files are written directly.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arbiter_games::Micros;
use rustix::process::Signal;
use tracing::warn;

use super::limits::{Bytes, Limits};
use super::pause::wait_until;
use super::places::{self, Place, Places};
use super::{sys, wire};
use crate::fault::{Context as _, Fault};

/// How long what workers before this one left is waited for.
const LEAVING: Duration = Duration::from_secs(5);

/// How long those are killed again and again that were forked meanwhile.
const KILLING: Duration = Duration::from_millis(100);

/// A peak of memory is at its limit when this part of that is missing, or less: memory is handed to
/// each processor in batches.
const NEARLY: u64 = 16;

/// How every group of ours is called, before the number of the process that made it.
const PREFIX: &str = "arbiter-";

/// Makes names of groups unique within this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a bot may have in sockets of the internet where that is counted apart, in bytes.
const NETWORK: u64 = 16 << 20;

/// Which interface a hierarchy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// One hierarchy for each controller.
    One,
    /// One hierarchy for all.
    Two,
}

/// What groups are made for, by the names of old controllers.
const CONTROLLERS: [&str; 4] = ["memory", "pids", "cpuacct", "freezer"];

/// Which hierarchies are looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hierarchies {
    /// All there are.
    #[default]
    All,
    /// Those of version 1, as on a machine that has no other.
    One,
    /// None, as on a machine that lets us into none.
    None,
}

/// Where groups of ours can be made, by what they are for. Places may coincide.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    pub(super) memory: Option<Place>,
    pub(super) processes: Option<Place>,
    pub(super) cpu: Option<Place>,
    pub(super) freezer: Option<Place>,
}

impl Groups {
    /// What this process may use. Permission is proved, not inferred: groups are made, and
    /// removed.
    pub(super) fn find(hierarchies: Hierarchies) -> Self {
        let mut found = places::find();
        sweep(&found);
        if hierarchies != Hierarchies::All {
            found.two = None;
        }
        if hierarchies == Hierarchies::None {
            found.ones.clear();
        }
        let usable = |place: &Place| prove(&place.path).then(|| place.clone());
        let two = found.two.as_ref().and_then(usable);
        let choose = |controller: &str, core: bool| {
            let own = two.as_ref().filter(|two| core || two.has(controller)).cloned();
            own.or_else(|| found.one(controller).as_ref().and_then(usable))
        };
        let [memory, processes, cpu, freezer] = CONTROLLERS;
        Self {
            memory: choose(memory, false),
            processes: choose(processes, false),
            cpu: choose(cpu, true),
            freezer: choose(freezer, true),
        }
    }

    /// The places without repetition.
    fn places(&self) -> Vec<&Path> {
        let all = [&self.memory, &self.processes, &self.cpu, &self.freezer];
        let mut paths: Vec<_> = all.into_iter().flatten().map(|place| &*place.path).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// A new, empty group with its limits set.
    pub(super) fn leaf(&self, limits: &Limits) -> Result<Cgroup, Fault> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{PREFIX}{}-{number}", std::process::id());
        let mut cgroup = Cgroup::default();
        let made = self.make(&name, limits, &mut cgroup);
        if let Err(error) = made {
            // The first failure is the one that matters; nothing ever was in it.
            drop(cgroup.remove());
            return Err(Fault::new("cannot make a control group", error));
        }
        Ok(cgroup)
    }

    fn make(&self, name: &str, limits: &Limits, cgroup: &mut Cgroup) -> io::Result<()> {
        for place in self.places() {
            let path = place.join(name);
            fs::create_dir(&path)?;
            cgroup.paths.push(path);
        }
        if let Some(place) = &self.memory {
            let path = place.path.join(name);
            limit_memory(&path, place.version, limits.memory)?;
            let file = match place.version {
                Version::One => "memory.oom_control",
                Version::Two => "memory.events",
            };
            let events = File::open(path.join(file))?;
            cgroup.memory = Some(Memory { version: place.version, path, events });
        }
        if let Some(place) = &self.processes {
            // One is the jail's own first process.
            let most = (limits.processes + 1).to_string();
            fs::write(place.path.join(name).join("pids.max"), most)?;
        }
        if let Some(place) = &self.cpu {
            let file = if place.version == Version::Two { "cpu.stat" } else { "cpuacct.usage" };
            cgroup.cpu = Some((place.version, File::open(place.path.join(name).join(file))?));
        }
        if let Some(place) = &self.freezer {
            cgroup.freezer = Some(Freezer::open(place.version, &place.path.join(name))?);
        }
        Ok(())
    }
}

/// Removes groups of processes that were killed before they could.
fn sweep(found: &Places) {
    let ones = CONTROLLERS.into_iter().filter_map(|controller| found.one(controller));
    let mut stale = Vec::new();
    for place in ones.chain(found.two.clone()) {
        let entries = fs::read_dir(place.path).into_iter().flatten().flatten();
        let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_stale));
        stale.extend(named.map(|entry| entry.path()).filter(|path| !has_strangers(path)));
    }
    for path in &stale {
        kill_all_in(path);
        // The old freezer keeps even the dead from it.
        drop(write(&path.join("freezer.state"), wire::THAWED));
    }
    // All together: what dies slowly in one is not waited for once more in the next.
    let mut clear = || {
        stale.retain(|path| {
            kill_all_in(path);
            // Another worker may have been faster.
            fs::remove_dir(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        });
        Ok(stale.is_empty())
    };
    drop(wait_until(LEAVING, &mut clear));
    for path in &stale {
        warn!(group = %path.display(), "what an earlier worker left in it does not die");
    }
}

/// Whether a group's name is one of ours, made by a process that is gone.
fn is_stale(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
    let owner = owner.and_then(|owner| owner.parse::<u32>().ok());
    owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists())
}

/// Whether the group has processes of another process namespace, whose workers we cannot see.
fn has_strangers(path: &Path) -> bool {
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    processes.lines().any(|pid| pid == "0")
}

/// Whether groups can be made at `path`, and entered.
fn prove(path: &Path) -> bool {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let probe = path.join(format!("{PREFIX}{}-{number}", std::process::id()));
    let made = fs::create_dir(&probe).is_ok();
    let entered = made && File::options().write(true).open(probe.join("cgroup.procs")).is_ok();
    made && fs::remove_dir(&probe).is_ok() && entered
}

fn limit_memory(path: &Path, version: Version, most: Bytes) -> io::Result<()> {
    let most = most.0.to_string();
    let (main, swap) = match version {
        Version::One => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", &*most)),
        Version::Two => ("memory.max", ("memory.swap.max", "0")),
    };
    fs::write(path.join(main), &most)?;
    // Not there where the kernel counts no swap; then what is swapped out is not counted.
    if path.join(swap.0).exists() {
        fs::write(path.join(swap.0), swap.1)?;
    }
    // The old hierarchy counts what waits in sockets of the internet by itself.
    let network = path.join("memory.kmem.tcp.limit_in_bytes");
    if version == Version::One && network.exists() {
        fs::write(network, NETWORK.to_string())?;
    }
    Ok(())
}

/// Stops a group and lets it go on.
#[derive(Debug)]
struct Freezer {
    version: Version,
    /// What is written to.
    order: File,
    /// What tells when everything has stopped.
    state: File,
}

impl Freezer {
    fn open(version: Version, path: &Path) -> io::Result<Self> {
        let (order, state) = match version {
            Version::One => ("freezer.state", "freezer.state"),
            Version::Two => ("cgroup.freeze", "cgroup.events"),
        };
        let order = File::options().write(true).open(path.join(order))?;
        Ok(Self { version, order, state: File::open(path.join(state))? })
    }

    fn is_frozen(&self) -> bool {
        let mut buffer = [0; 64];
        let read = self.state.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..read]).unwrap_or_default();
        match self.version {
            Version::One => text.trim() == "FROZEN",
            Version::Two => text.contains("frozen 1"),
        }
    }

    fn freeze(&self) -> io::Result<()> {
        (&self.order).write_all(if self.version == Version::One { b"FROZEN" } else { b"1" })
    }

    fn thaw(&self) -> io::Result<()> {
        (&self.order).write_all(if self.version == Version::One { wire::THAWED } else { b"0" })
    }
}

/// The control group of one jail, in as many hierarchies as it takes.
#[derive(Debug, Default)]
pub(super) struct Cgroup {
    paths: Vec<PathBuf>,
    memory: Option<Memory>,
    cpu: Option<(Version, File)>,
    freezer: Option<Freezer>,
}

/// Where memory is counted.
///
/// Whoever needs most is killed when it runs out, and not the whole group at once, which the old
/// hierarchy cannot do: so the jail's first process lives on everywhere, and a bot that is executed
/// once per decision can be executed again. What else is to die the worker kills.
#[derive(Debug)]
struct Memory {
    version: Version,
    path: PathBuf,
    /// What tells how many processes were killed.
    events: File,
}

impl Cgroup {
    /// Moves a process into the group.
    pub(super) fn enter(&self, pid: libc::pid_t) -> Result<(), Fault> {
        let number = pid.to_string();
        for path in &self.paths {
            fs::write(path.join("cgroup.procs"), &number)
                .fault("cannot move a process into its control group")?;
        }
        Ok(())
    }

    /// The files into which a process writes `0` to enter.
    pub(super) fn doors(&self) -> Result<Vec<File>, Fault> {
        let open = |path: &PathBuf| File::options().write(true).open(path.join("cgroup.procs"));
        self.paths.iter().map(open).collect::<Result<_, _>>().fault("cannot open a control group")
    }

    /// Processor time of every process that ever was in the group, if it is measured.
    pub(super) fn cpu(&self) -> Option<Micros> {
        let (version, file) = self.cpu.as_ref()?;
        let mut buffer = [0; 64];
        let read = file.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..read]).ok()?;
        match version {
            Version::One => text.trim().parse().ok().map(|nanos: i64| Micros(nanos / 1000)),
            Version::Two => {
                let usage = text.strip_prefix("usage_usec ")?.lines().next()?;
                usage.parse().ok().map(Micros)
            }
        }
    }

    /// Whether the group can be stopped.
    pub(super) fn freezes(&self) -> bool {
        self.freezer.is_some()
    }

    /// Stops everything in the group. Nothing in it executes an instruction of its own any more: a
    /// thread that runs is interrupted, and one that does not stops before it would go on. Until it
    /// stands, though, it may still be in the kernel.
    pub(super) fn freeze(&self) -> Result<(), Fault> {
        self.freezer.as_ref().map_or(Ok(()), Freezer::freeze).fault("cannot freeze a bot")
    }

    /// Whether everything in the group stands, if it can be stopped.
    pub(super) fn stands(&self) -> bool {
        self.freezer.as_ref().is_none_or(Freezer::is_frozen)
    }

    /// Lets it go on.
    pub(super) fn thaw(&self) -> Result<(), Fault> {
        self.freezer.as_ref().map_or(Ok(()), Freezer::thaw).fault("cannot thaw a bot")
    }

    /// The most memory in use at a time, without what the system's files that it read take up;
    /// nothing where it is not measured. The files are subtracted as they are now.
    pub(super) fn peak_memory(&self) -> Option<Bytes> {
        let Memory { version, path, .. } = self.memory.as_ref()?;
        let (peak, files, shared) = match version {
            Version::One => ("memory.max_usage_in_bytes", "total_cache", "total_shmem"),
            Version::Two => ("memory.peak", "file", "shmem"),
        };
        let peak: u64 = fs::read_to_string(path.join(peak)).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(path.join("memory.stat")).ok()?;
        let cached = value(&stat, files)?.saturating_sub(value(&stat, shared).unwrap_or(0));
        Some(Bytes(peak.saturating_sub(cached)))
    }

    /// Whether memory is limited and counted.
    pub(super) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// How many processes of the group were killed for want of memory, its own or the machine's;
    /// nothing where memory is not counted.
    pub(super) fn killed_for_memory(&self) -> Option<u64> {
        let Memory { events, .. } = self.memory.as_ref()?;
        let mut buffer = [0; 256];
        let read = events.read_at(&mut buffer, 0).ok()?;
        value(std::str::from_utf8(&buffer[..read]).ok()?, "oom_kill")
    }

    /// Whether the group ever needed more memory than it may have; so if it cannot be found out.
    pub(super) fn was_full(&self) -> bool {
        let Some(Memory { version, path, .. }) = &self.memory else { return true };
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let number = |file: &str| -> Option<u64> { read(file).trim().parse().ok() };
        match version {
            // Newer kernels do not count failures here any more, but the peak tells as well.
            Version::One => {
                let peak = number("memory.max_usage_in_bytes");
                let most = number("memory.limit_in_bytes");
                peak.zip(most).is_none_or(|(peak, most)| peak >= most - most / NEARLY)
            }
            Version::Two => value(&read("memory.events"), "oom").is_none_or(|times| times > 0),
        }
    }

    /// Whether the group has as many processes as it may, where they are counted.
    pub(super) fn is_full_of_processes(&self) -> Option<bool> {
        let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
        self.paths.iter().find_map(|path| {
            let most = number(&path.join("pids.max"))?;
            Some(number(&path.join("pids.current"))? >= most)
        })
    }

    /// Whether no process is in the group.
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
        self.let_die();
        for path in &self.paths {
            empty(path, KILLING);
        }
    }

    /// Lets what was killed die: the old freezer keeps even the dead from it.
    pub(super) fn let_die(&self) {
        if self.freezer.as_ref().is_some_and(|freezer| freezer.version == Version::One) {
            drop(self.thaw());
        }
    }

    /// What is written to so that the killed can die although they are frozen, where that must be.
    pub(super) fn keeps_the_dead(&self) -> io::Result<Option<File>> {
        match &self.freezer {
            Some(Freezer { version: Version::One, order, .. }) => order.try_clone().map(Some),
            _ => Ok(None),
        }
    }

    /// Removes the group, if the last of its processes is gone.
    ///
    /// # Errors
    /// If there are processes in it, or it cannot be removed for another reason.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        while let Some(path) = self.paths.last() {
            match fs::remove_dir(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => drop(self.paths.pop()),
            }
        }
        Ok(())
    }

    /// Lets what is dying in the group do so on any processor, and there after everything else:
    /// whether all of it does. Where there is no group there is nothing that could.
    pub(super) fn step_back(&self) -> bool {
        let mut is_idle = false;
        for path in &self.paths {
            // Only the new hierarchy has this file, with the processor's controller.
            is_idle |= write(&path.join("cpu.idle"), b"1").is_ok();
        }
        let Some(path) = self.paths.first() else { return false };
        let threads = ["cgroup.threads", "tasks"].map(|file| fs::read_to_string(path.join(file)));
        let threads = threads.iter().flatten().flat_map(|text| text.lines());
        let threads = threads.filter_map(|thread| thread.parse().ok());
        let all = threads.map(sys::step_back).fold(true, |all, one| all & one);
        is_idle || all
    }
}

/// Writes to a file that is there.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::options().write(true).open(path)?.write_all(bytes)
}

/// The number behind `name` in a file of lines of names and numbers.
fn value(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name).and_then(|(_, number)| number.trim().parse().ok())
}

/// Kills every process in the group at `path`: together where the kernel can, one by one where
/// not. Whether there were any that may have had children meanwhile.
fn kill_all_in(path: &Path) -> bool {
    if fs::write(path.join("cgroup.kill"), "1").is_ok() {
        return false;
    }
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let pids = processes.lines().filter_map(|line| line.parse().ok());
    let pids = pids.filter_map(rustix::process::Pid::from_raw);
    // One may have died by itself in the meantime.
    let killed = pids.filter(|pid| rustix::process::kill_process(*pid, Signal::KILL).is_ok());
    killed.count() > 0
}

/// Kills whatever is in the group at `path` until there is nothing more, or the time is up.
fn empty(path: &Path, limit: Duration) {
    drop(wait_until(limit, || Ok(!kill_all_in(path))));
}
