//! Where submitted programs run: the only place that starts processes or contains `unsafe`.
//!
//! # Theory of operation
//!
//! A [`Host`] is what this machine can isolate and measure, found out once. A [`Jail`] is one
//! seat of one match: a home directory, a control group where the machine gives one, and every
//! process the bot starts. It outlives those processes: a bot that is executed once per decision
//! runs many times in one jail. A [`Process`] is one running program with its three pipes.
//!
//! Whatever happens, [`Jail::close`] kills everything in the jail, waits for it and removes the
//! home; dropping a jail does the same and keeps silent about failures.
//!
//! The parent-death signal that ties a bot's life to ours follows the *thread* that forked, so a
//! jail must be opened, used and closed by the one thread that plays the match.

mod cgroup;
mod home;
mod meter;
mod process;

use std::fmt;
use std::str::FromStr;
use std::sync::RwLock;

use arbiter_games::Micros;
use thiserror::Error;

pub use home::{Home, Source};
pub(crate) use process::search_path;
pub use process::{Exit, NoStart, Process, Stdin};

use crate::fault::Fault;
use cgroup::{Cgroup, CgroupRoot};
use meter::Meter;

/// Keeps the writing of programs and the forking of processes apart.
///
/// A child that is forked while another thread writes a program inherits the writing descriptor
/// until it executes its own program, and meanwhile the kernel refuses to execute the one that was
/// written ("text file busy"). Whoever writes programs holds this for reading, whoever forks for
/// writing.
static WRITING: RwLock<()> = RwLock::new(());

/// How much isolation is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// As much as the machine gives.
    #[default]
    Auto,
    /// Everything, or nothing is run.
    Strict,
    /// None: for programs one trusts.
    Off,
}

/// A word that is no policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a sandbox policy; use auto, strict or off")]
pub struct UnknownPolicy(String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        match text {
            "auto" => Ok(Self::Auto),
            "strict" => Ok(Self::Strict),
            "off" => Ok(Self::Off),
            other => Err(UnknownPolicy(other.to_owned())),
        }
    }
}

/// What holds a bot, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing but a process group and, where there is one, a control group to measure and kill.
    D,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::D => f.pad("D"),
        }
    }
}

/// The machine gives less isolation than was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "sandbox strict: this build isolates at level {0} only, strict asks for level A; \
     run programs you trust with --sandbox auto"
)]
pub struct Refused(Level);

/// What this machine can isolate and measure.
#[derive(Debug)]
pub struct Host {
    level: Level,
    cgroups: Option<CgroupRoot>,
}

impl Host {
    /// Finds out what the machine gives.
    ///
    /// # Errors
    /// [`Refused`] if `policy` asks for more.
    pub fn prepare(policy: Policy) -> Result<Self, Refused> {
        let host = Self { level: Level::D, cgroups: CgroupRoot::find() };
        match policy {
            Policy::Strict => Err(Refused(host.level)),
            Policy::Auto | Policy::Off => Ok(host),
        }
    }

    /// How well bots are held.
    pub fn level(&self) -> Level {
        self.level
    }

    /// How well bots are held, in one line for whoever runs them.
    pub fn announcement(&self) -> String {
        let level = self.level;
        format!("sandbox level {level}: bots run with your rights, play only what you trust")
    }

    /// Whether processor time is measured for whole process trees, exactly.
    pub fn measures_trees(&self) -> bool {
        self.cgroups.is_some()
    }
}

/// One seat of one match: everything that its bot has and runs.
#[derive(Debug)]
pub struct Jail {
    home: Home,
    cgroup: Option<Cgroup>,
    meter: Meter,
    /// Processes started here and not yet known to have ended.
    leaders: Vec<libc::pid_t>,
}

impl Jail {
    /// Opens a jail around `home`.
    ///
    /// # Errors
    /// A fault if the control group cannot be made.
    pub fn open(host: &Host, home: Home) -> Result<Self, Fault> {
        let cgroup = host.cgroups.as_ref().map(CgroupRoot::leaf).transpose()?;
        Ok(Self { home, cgroup, meter: Meter::default(), leaders: Vec::new() })
    }

    /// Starts a program in the home directory.
    ///
    /// # Errors
    /// [`NoStart::Bot`] if the program itself cannot be run, otherwise a fault.
    pub fn start(&mut self, argv: &[String], stdin: Stdin) -> Result<Process, NoStart> {
        let procs = self.cgroup.as_ref().map(Cgroup::procs);
        let process = process::start(argv, self.home.path(), stdin, procs)?;
        self.leaders.push(process.pid());
        Ok(process)
    }

    /// The processor time used in this jail so far.
    pub fn cpu(&self) -> Micros {
        match &self.cgroup {
            Some(cgroup) => cgroup.cpu(),
            None => self.meter.cpu(&self.leaders),
        }
    }

    /// The processor time used by the live processes started here: an exact part of
    /// [`Jail::cpu`] without their children, at a quarter of the price.
    pub fn cpu_of_leaders(&self) -> Micros {
        self.leaders.iter().fold(Micros::ZERO, |sum, pid| sum + process::clock(*pid))
    }

    /// Takes the exit of a process if it has ended.
    pub fn reap(&mut self, process: &mut Process) -> Option<Exit> {
        let (exit, used) = process.reap()?;
        self.retire(process, used);
        Some(exit)
    }

    /// Takes note that `process` was reaped, having used so much processor time.
    fn retire(&mut self, process: &Process, used: Micros) {
        self.leaders.retain(|pid| *pid != process.pid());
        self.meter.ended(used);
    }

    /// Ends one execution: kills whatever still runs here, and waits for the program itself. Tells
    /// how it ended if it did so before it was killed.
    pub fn end_process(&mut self, process: &mut Process) -> Option<Exit> {
        let exit = process.exit().or_else(|| self.reap(process));
        self.kill();
        if process.exit().is_none() {
            let used = process.wait();
            self.retire(process, used);
        }
        exit
    }

    /// Kills everything that runs here.
    pub fn kill(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        for pid in &self.leaders {
            process::kill_group(*pid);
        }
    }

    /// Kills everything, waits until it is gone, and removes what was made for this jail.
    ///
    /// # Errors
    /// A fault if anything survives or cannot be removed.
    pub fn close(mut self) -> Result<(), Fault> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.kill();
        for pid in self.leaders.drain(..) {
            process::wait(pid);
        }
        if let Some(cgroup) = self.cgroup.take() {
            cgroup.remove()?;
        }
        self.home.remove()
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // A jail that was not closed belongs to a match that already failed; that is reported.
        drop(self.end());
    }
}
