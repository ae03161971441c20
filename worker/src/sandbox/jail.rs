//! One seat of one match: the bot's files, processes and limits.

mod freezing;
mod start_failure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Micros;

use super::Workdir;
use super::bot_state::{self, SkippedFiles};
use super::cgroup::Cgroup;
use super::host::{Host, Isolation};
use super::ipc::{InitRequest, InitResponse, JailSetup};
use super::jail_config::{Bytes, GRACE, JailConfig, Limits, Ponder};
use super::landlock::LandlockSetup;
use super::loopback_listener::{LoopbackListener, NetworkAccess};
use super::polling::poll_until;
use super::process::{Exit, Process, Stdin};
use super::reaper::{self, Leftovers};
use super::seccomp::MissingFeatures;
use super::with_namespaces::{JailFactory, NamespaceJail};
use super::without_namespaces::{Children, PreExecSetup};
use crate::fault::Fault;
use freezing::{MAX_SLOWNESS, RunState};

/// The unit of reported memory peaks, in bytes.
const MEGABYTE: u64 = 1_000_000;

/// How much time a killed jail may use until it is gone. Most need a thousandth of this time.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait for a killed jail that gets no processor.
const MAX_CLOSE_TIME: Duration = Duration::from_secs(60);

/// After this time dying processes may use every processor.
const QUICK_EXIT: Duration = Duration::from_millis(100);

/// How a jail runs its bot.
#[derive(Debug)]
enum Backend {
    /// In namespaces.
    Namespaces(NamespaceJail),
    /// As our children in a directory, with Landlock or without isolation.
    Children(Children, PathBuf, Option<PreExecSetup>),
}

/// The result of closing a jail.
#[derive(Debug, Default)]
pub struct ClosedJail {
    /// The files that could not be saved.
    pub skipped: SkippedFiles,
    /// Whether processes were still dying at the time limit. Then no files are saved, and the
    /// [reaper] removes the rest when they are gone.
    pub lingers: bool,
}

/// One seat of one match: the bot's files, processes and limits.
#[derive(Debug)]
pub struct Jail {
    backend: Backend,
    workdir: Option<Workdir>,
    cgroup: Option<Cgroup>,
    /// The processor time used before the bot started.
    cpu_at_start: Micros,
    limits: Limits,
    ponder: Ponder,
    /// How many kills for memory were reported.
    reported_kills: u64,
    run_state: RunState,
    /// The total time by which stops may still be slow in this match.
    slow_stop_budget: Duration,
    /// Whether the jail was killed because it did not stop, its processes did not end, or its init
    /// did not respond in time.
    is_stuck: bool,
    /// Whether a program of the bot was started here. After that, the bot may cause failures.
    was_used: bool,
    closed: bool,
}

impl Jail {
    /// Opens a jail. After an error it removes the parts that it created.
    pub fn open(host: &Host, workdir: Workdir, config: &JailConfig) -> Result<Self, Fault> {
        Self::open_with(host, workdir, config, NetworkAccess::None)
    }

    /// Opens a jail for a bot that connects to the worker. It is a fault if this machine has no
    /// network namespaces.
    pub fn open_with_listener(
        host: &Host,
        workdir: Workdir,
        config: &JailConfig,
    ) -> Result<(Self, LoopbackListener), Fault> {
        if matches!(host.isolation, Isolation::Landlock) {
            let cause = "this machine has no network namespaces; see `arbiter doctor`";
            return Err(Fault::new("cannot seat a bot that speaks http", cause));
        }
        let mut jail = Self::open_with(host, workdir, config, NetworkAccess::Loopback)?;
        let listener = jail.listener()?;
        Ok((jail, listener))
    }

    /// Takes the listener of a jail that was opened with one.
    pub(super) fn listener(&mut self) -> Result<LoopbackListener, Fault> {
        match &mut self.backend {
            Backend::Children(..) => LoopbackListener::on_host(),
            Backend::Namespaces(jail) => {
                let missing = || Fault::new("cannot build a jail", "its listener is missing");
                LoopbackListener::from_socket(jail.listener.take().ok_or_else(missing)?.into())
            }
        }
    }

    fn open_with(
        host: &Host,
        workdir: Workdir,
        config: &JailConfig,
        network: NetworkAccess,
    ) -> Result<Self, Fault> {
        let cgroup = host.groups.create(&config.limits)?;
        match &host.isolation {
            Isolation::Namespaces(factory) => {
                Self::open_in_namespaces(factory, Some(workdir), config, cgroup, network)
            }
            Isolation::Landlock => Self::open_with_landlock(workdir, config, cgroup),
            Isolation::None => Self::open_children(workdir, config, cgroup, |_| Ok(None)),
        }
    }

    /// Opens a jail with Landlock.
    pub(super) fn open_with_landlock(
        workdir: Workdir,
        config: &JailConfig,
        cgroup: Cgroup,
    ) -> Result<Self, Fault> {
        let prepare =
            |path: &Path| Ok(Some(PreExecSetup::new(LandlockSetup::for_dir(path)?, config)));
        Self::open_children(workdir, config, cgroup, prepare)
    }

    /// Opens a jail without namespaces.
    fn open_children(
        mut workdir: Workdir,
        config: &JailConfig,
        cgroup: Cgroup,
        prepare: impl FnOnce(&Path) -> Result<Option<PreExecSetup>, Fault>,
    ) -> Result<Self, Fault> {
        let copy = workdir.create_copy(&config.limits);
        let path_and_setup = copy.and_then(|path| prepare(&path).map(|setup| (path, setup)));
        match path_and_setup {
            Ok((path, setup)) => {
                let backend = Backend::Children(Children::default(), path, setup);
                Ok(Self::assemble(backend, Some(workdir), config, cgroup))
            }
            Err(fault) => {
                reaper::hand_over(Leftovers {
                    cgroup: Some(cgroup),
                    workdir: Some(workdir),
                    ..Leftovers::default()
                });
                Err(fault)
            }
        }
    }

    /// Opens a jail in namespaces. Without `workdir` its directory is empty.
    pub(super) fn open_in_namespaces(
        factory: &Arc<JailFactory>,
        workdir: Option<Workdir>,
        config: &JailConfig,
        cgroup: Cgroup,
        network: NetworkAccess,
    ) -> Result<Self, Fault> {
        match Self::build_namespace_jail(factory, workdir.as_ref(), config, &cgroup, network) {
            Ok(jail) => {
                let mut jail = Self::assemble(Backend::Namespaces(jail), workdir, config, cgroup);
                jail.cpu_at_start = jail.cpu_time();
                Ok(jail)
            }
            Err(fault) => {
                reaper::hand_over(Leftovers { cgroup: Some(cgroup), ..Leftovers::default() });
                Err(fault)
            }
        }
    }

    /// Takes a jail from the factory and builds it.
    fn build_namespace_jail(
        factory: &Arc<JailFactory>,
        workdir: Option<&Workdir>,
        config: &JailConfig,
        cgroup: &Cgroup,
        network: NetworkAccess,
    ) -> Result<NamespaceJail, Fault> {
        let program = workdir.map(|workdir| factory.store.copy(&workdir.source)).transpose()?;
        let state_dir = workdir.and_then(|workdir| workdir.state_dir.as_deref());
        let setup = JailSetup {
            program,
            limits: config.limits,
            cores: config.cores.clone(),
            separate_users: factory.separate_users,
            missing: MissingFeatures {
                freezer: !cgroup.can_freeze(),
                memory: !cgroup.limits_memory(),
                network: network == NetworkAccess::None,
                // Init checks for the backlog setting itself.
                ..MissingFeatures::default()
            },
            saves_state: state_dir.is_some(),
            needs_listener: network == NetworkAccess::Loopback,
        };
        let jail = factory.open(cgroup, setup)?;
        if let (Some(state_dir), Some((upper_dir, user))) = (state_dir, jail.upper_dir()) {
            bot_state::restore(state_dir, upper_dir, user, &config.limits)?;
        }
        Ok(jail)
    }

    fn assemble(
        backend: Backend,
        workdir: Option<Workdir>,
        config: &JailConfig,
        cgroup: Cgroup,
    ) -> Self {
        let JailConfig { limits, ponder, cores: _ } = *config;
        Self {
            backend,
            workdir,
            cgroup: Some(cgroup),
            cpu_at_start: Micros::ZERO,
            limits,
            ponder,
            reported_kills: 0,
            run_state: RunState::Running,
            slow_stop_budget: MAX_SLOWNESS,
            is_stuck: false,
            was_used: false,
            closed: false,
        }
    }

    /// Starts a program in the working directory. The bot caused an inner error, which is a text
    /// for its author: the program cannot be executed, or an earlier program of the bot prevents
    /// the start.
    pub fn start(
        &mut self,
        argv: &[String],
        stdin: Stdin,
    ) -> Result<Result<Process, String>, Fault> {
        self.resume()?;
        let result = match &mut self.backend {
            Backend::Namespaces(jail) => jail.start(argv, stdin),
            Backend::Children(children, path, setup) => {
                let procs_files =
                    self.cgroup.as_ref().map_or_else(|| Ok(Vec::new()), Cgroup::procs_files)?;
                children.start(argv, path, stdin, &procs_files, setup.as_ref())
            }
        };
        match result {
            Ok(process) => {
                self.was_used = true;
                Ok(Ok(process))
            }
            Err(error) => self.start_failure(error).map(Err),
        }
    }

    /// Runs the self-test in the jail.
    pub(super) fn run_self_test(
        &self,
        plan: super::self_test::AttackPlan,
    ) -> Result<Process, Fault> {
        match &self.backend {
            Backend::Namespaces(jail) => jail.run_self_test(plan),
            Backend::Children(..) => {
                Err(Fault::new("cannot run the self-test", "there are no namespaces"))
            }
        }
    }

    /// The processor time used in this jail so far.
    pub fn cpu_time(&self) -> Micros {
        let group = self.cgroup.as_ref().and_then(Cgroup::cpu_time);
        let total = group.unwrap_or_else(|| match &self.backend {
            Backend::Children(children, ..) => children.cpu_time(),
            Backend::Namespaces(jail) => match jail.request(&InitRequest::CpuTime) {
                Ok(Some(InitResponse::CpuTime(micros))) => Micros(micros),
                // Init was killed. The processor time used until then is lost.
                _ => self.cpu_at_start,
            },
        });
        total - self.cpu_at_start
    }

    /// The processor time of the live processes started here, without their children; none in
    /// namespaces. It is a part of [`Jail::cpu_time`] at a quarter of the cost.
    pub fn leader_cpu_time(&self) -> Option<Micros> {
        match &self.backend {
            Backend::Children(children, ..) => Some(children.live_cpu_time()),
            Backend::Namespaces(_) => None,
        }
    }

    /// The peak of memory; none if no control group counts it and init does not poll it.
    pub fn peak_memory(&self) -> Option<Bytes> {
        self.cgroup.as_ref().and_then(Cgroup::peak_memory).or_else(|| {
            // Zero means that the bot ended before the first poll.
            self.memory_polled_by_init().map(|(_, peak)| peak).filter(|peak| *peak > Bytes(0))
        })
    }

    /// A text for the bot's author if a process was killed for its memory use since the last call.
    /// This reads one file of the control group, and misses kills by init. Those kill all processes
    /// of the jail, and [`Jail::kill_cause`] reports them. It is a fault if the machine ran out of
    /// memory.
    pub fn check_oom_kill(&mut self) -> Result<Option<String>, Fault> {
        match self.cgroup.as_ref().and_then(Cgroup::oom_kills) {
            Some(kills) => self.count_kills(kills),
            None => Ok(None),
        }
    }

    /// A text for the bot's author if the sandbox killed processes of the bot since the last call:
    /// why. It is a fault if the machine ran out of memory.
    pub fn kill_cause(&mut self) -> Result<Option<String>, Fault> {
        let cgroup_kills = self.cgroup.as_ref().and_then(Cgroup::oom_kills);
        match cgroup_kills.or_else(|| Some(self.memory_polled_by_init()?.0)) {
            Some(kills) => self.count_kills(kills),
            None => Ok(None),
        }
    }

    fn count_kills(&mut self, kills: u64) -> Result<Option<String>, Fault> {
        if kills <= std::mem::replace(&mut self.reported_kills, kills) {
            return Ok(None);
        }
        if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.reached_memory_limit()) {
            return Err(Fault::new(
                "a bot's process was killed within its limits",
                "the machine or the worker's control group ran out of memory",
            ));
        }
        let peak = self.peak_memory().map_or(0, |peak| peak.0 / MEGABYTE);
        let limit = self.limits.memory;
        Ok(Some(format!("killed for using more than its {limit} of memory (peak {peak} MB)")))
    }

    /// The number of kills for memory, and the memory peak, as polled by init. None if a control
    /// group counts memory or if init is gone.
    fn memory_polled_by_init(&self) -> Option<(u64, Bytes)> {
        let Backend::Namespaces(jail) = &self.backend else { return None };
        match jail.request(&InitRequest::MemoryUse) {
            Ok(Some(InitResponse::MemoryUse { kills, peak })) => Some((kills, Bytes(peak))),
            // Init was killed.
            _ => None,
        }
    }

    /// Takes the exit of a process if it has ended.
    pub fn reap(&mut self, process: &mut Process) -> Option<Exit> {
        let (exit, cpu_time) = process.reap()?;
        self.record_exit(process, cpu_time);
        Some(exit)
    }

    /// Records that `process` was reaped after using `cpu_time`.
    fn record_exit(&mut self, process: &Process, cpu_time: Micros) {
        if let Backend::Children(children, ..) = &mut self.backend {
            children.record_exit(process, cpu_time);
        }
    }

    /// Ends one execution: kills all processes of the jail, and waits for the program. Returns the
    /// program's exit if it ended before the kill. The jail can be used again.
    pub fn end_process(&mut self, process: &mut Process) -> Option<Exit> {
        let exit = process.exit().or_else(|| self.reap(process));
        let resume_result = self.resume();
        let response = match &self.backend {
            Backend::Namespaces(jail) => {
                resume_result.and_then(|()| jail.request(&InitRequest::KillAll))
            }
            Backend::Children(..) => Ok(None),
        };
        // A jail that does not respond cannot be used again. Its next use fails.
        if !matches!(response, Ok(Some(InitResponse::Is(true)))) {
            self.is_stuck |=
                matches!(response, Ok(Some(InitResponse::Is(false)))) || self.is_unresponsive();
            self.kill();
        }
        if process.exit().is_none() {
            match process.wait() {
                Some(cpu_time) => self.record_exit(process, cpu_time),
                None => self.is_stuck = true,
            }
        }
        exit
    }

    /// Kills all processes of the jail. A jail with namespaces cannot start programs afterwards.
    pub fn kill(&mut self) {
        match &self.backend {
            // The kernel kills all processes of a PID namespace with its init.
            Backend::Namespaces(jail) => {
                jail.kill();
                self.cgroup.iter().for_each(Cgroup::thaw_killed);
            }
            Backend::Children(children, ..) => {
                children.kill();
                self.cgroup.iter().for_each(Cgroup::kill);
            }
        }
        self.run_state = RunState::Killed;
    }

    /// Kills everything, waits until it is gone, saves the bot's files and removes the jail. If
    /// processes take too long to die, the [reaper] removes the rest.
    ///
    /// # Errors
    /// A fault if the files cannot be saved.
    pub fn close(mut self) -> Result<ClosedJail, Fault> {
        self.close_once()
    }

    fn close_once(&mut self) -> Result<ClosedJail, Fault> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(ClosedJail::default());
        }
        self.kill();
        let mut is_gone = self.is_gone_after(QUICK_EXIT);
        if !is_gone {
            self.deprioritize();
            is_gone = self.dies_in_time();
        }
        // A live process could still change the files. So save them only when all are dead.
        let skipped = if is_gone { self.save_state() } else { Ok(SkippedFiles::default()) };
        let empty_backend = Backend::Children(Children::default(), PathBuf::new(), None);
        let (jail, children) = match std::mem::replace(&mut self.backend, empty_backend) {
            Backend::Namespaces(jail) => (Some(jail), Children::default()),
            Backend::Children(children, ..) => (None, children),
        };
        let mut leftovers = Leftovers {
            jail,
            children,
            cgroup: self.cgroup.take(),
            workdir: self.workdir.take(),
            directory: None,
        };
        // A control group is empty a moment after its processes have ended.
        let removed = poll_until(GRACE, || Ok(!is_gone || leftovers.remove().is_ok()))?;
        if !is_gone || !removed {
            reaper::hand_over(leftovers);
        }
        Ok(ClosedJail { skipped: skipped?, lingers: !is_gone })
    }

    /// Saves the files for the bot's next match, if the bot has a state. Returns the skipped files.
    fn save_state(&self) -> Result<SkippedFiles, Fault> {
        let Some(workdir) = &self.workdir else { return Ok(SkippedFiles::default()) };
        match &self.backend {
            Backend::Children(..) => workdir.save_state(&self.limits),
            Backend::Namespaces(jail) => match (&workdir.state_dir, jail.upper_dir()) {
                (Some(state_dir), Some((upper_dir, _))) => {
                    bot_state::capture(upper_dir, state_dir, &self.limits, None)
                }
                _ => Ok(SkippedFiles::default()),
            },
        }
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        // A jail that was not closed belongs to a failed match, which reports its own error.
        drop(self.close_once());
    }
}
