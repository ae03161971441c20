//! Bots without namespaces: child processes of the worker, each in its own session.

#![expect(unsafe_code, reason = "the code between fork and exec must be kept safe by hand")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, PoisonError};

use arbiter_games::Micros;
use rustix::process::{Resource, Signal};
use rustix::thread::CpuSet;

use super::jail_config::{JailConfig, MAX_ADDRESS_SPACE};
use super::landlock::LandlockSetup;
use super::process::{Pipes, Process, StartError, Stdin};
use super::{PROGRAM_WRITES, search_path, syscalls};
use crate::fault::Fault;

/// The restrictions of a program, applied between fork and exec: Landlock, and limits of each
/// process.
#[derive(Clone, Debug)]
pub(super) struct PreExecSetup {
    landlock: Arc<LandlockSetup>,
    limits: Vec<(Resource, u64)>,
    cores: CpuSet,
}

impl PreExecSetup {
    pub(super) fn new(landlock: LandlockSetup, config: &JailConfig) -> Self {
        let JailConfig { limits, cores, .. } = config;
        let mut resources = vec![
            (Resource::Nofile, limits.descriptors),
            (Resource::Fsize, limits.disk.0),
            (Resource::As, MAX_ADDRESS_SPACE),
            (Resource::Data, limits.memory.0),
        ];
        if landlock.user.is_some() {
            resources.push((Resource::Nproc, limits.processes.into()));
        }
        Self { landlock: Arc::new(landlock), limits: resources, cores: syscalls::cpu_set(cores) }
    }

    /// Applies the restrictions to the calling process. Allocates nothing.
    fn apply(&self) -> io::Result<()> {
        for (resource, limit) in &self.limits {
            syscalls::set_limit(*resource, *limit)?;
        }
        rustix::thread::sched_setaffinity(None, &self.cores)?;
        self.landlock.enforce()
    }
}

/// The processes of one jail that are our children, and the processor time that they used.
///
/// The processor time includes each live child with all its threads, each ended child, and the
/// grandchildren that an ended child waited for. It misses all other grandchildren: only a control
/// group counts those.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// The pids of children that were started here and not yet reaped.
    pub(super) live: Vec<libc::pid_t>,
    /// The processor time of ended children.
    ended_cpu: Micros,
}

impl Children {
    /// Starts a program and tracks it.
    pub(super) fn start(
        &mut self,
        argv: &[String],
        workdir: &Path,
        stdin: Stdin,
        procs_files: &[File],
        setup: Option<&PreExecSetup>,
    ) -> Result<Process, StartError> {
        let process = start(argv, workdir, stdin, procs_files, setup)?;
        self.live.extend(process.pid());
        Ok(process)
    }

    /// Records that `process` was reaped after using `cpu_time`.
    pub(super) fn record_exit(&mut self, process: &Process, cpu_time: Micros) {
        self.live.retain(|pid| process.pid() != Some(*pid));
        self.ended_cpu += cpu_time;
    }

    /// The processor time of all children so far.
    pub(super) fn cpu_time(&self) -> Micros {
        self.ended_cpu + self.live_cpu_time()
    }

    /// The processor time of the live children, without their own children.
    pub(super) fn live_cpu_time(&self) -> Micros {
        self.live.iter().fold(Micros::ZERO, |sum, pid| sum + syscalls::cpu_time(*pid))
    }

    /// Kills the process group of each live child.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Sends a signal to the process group of each live child.
    pub(super) fn signal(&self, signal: libc::c_int) {
        self.live.iter().for_each(|pid| syscalls::signal_group(*pid, signal));
    }

    /// Whether all children have ended. It does not reap them, so their pids stay reserved.
    pub(super) fn have_ended(&self) -> bool {
        self.live.iter().all(|pid| syscalls::has_ended(*pid))
    }

    /// Reaps the children that have ended, which frees their pids.
    pub(super) fn reap_ended(&mut self) {
        self.live.retain(|pid| syscalls::reap(*pid).is_none());
    }
}

/// Starts `argv` in the directory `workdir`. The process joins the control groups of `procs_files`
/// before it executes the program.
#[expect(clippy::disallowed_methods, reason = "this is the sandbox")]
fn start(
    argv: &[String],
    workdir: &Path,
    stdin: Stdin,
    procs_files: &[File],
    setup: Option<&PreExecSetup>,
) -> Result<Process, StartError> {
    let (program, arguments) = argv.split_first().expect("a manifest's command is never empty");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(workdir).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin == Stdin::Pipe { Stdio::piped() } else { Stdio::null() });
    command.env_clear().env("HOME", workdir).env("LANG", "C.UTF-8").env("TMPDIR", workdir);
    command.env("PATH", search_path());
    let procs_fds: Vec<RawFd> = procs_files.iter().map(File::as_raw_fd).collect();
    let setup = setup.cloned();
    // SAFETY: `before_exec` makes only async-signal-safe system calls and allocates nothing, as a
    // child forked from a process with threads must. The descriptors stay open: the caller holds
    // the files, and fork inherits them although exec closes them.
    unsafe { command.pre_exec(move || before_exec(&procs_fds, setup.as_ref())) };
    let spawn_result = {
        let _lock = PROGRAM_WRITES.write().unwrap_or_else(PoisonError::into_inner);
        command.spawn()
    };
    let mut child = spawn_result.map_err(|error| StartError::refused(program, error))?;
    let pid = libc::pid_t::try_from(child.id()).expect("a process number is a pid_t");
    let pipes = Pipes {
        stdin: child.stdin.take().map(OwnedFd::from),
        stdout: child.stdout.take().expect("a piped stdout").into(),
        stderr: child.stderr.take().expect("a piped stderr").into(),
    };
    Process::from_child(pid, pipes).map_err(|error| {
        syscalls::signal_group(pid, libc::SIGKILL);
        syscalls::wait_for(pid);
        StartError::Fault(Fault::new("cannot observe a bot's process", error))
    })
}

/// Runs in the child between fork and exec.
fn before_exec(procs_fds: &[RawFd], setup: Option<&PreExecSetup>) -> io::Result<()> {
    for procs in procs_fds {
        // SAFETY: writes one byte of a static string.
        if unsafe { libc::write(*procs, b"0".as_ptr().cast(), 1) } != 1 {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
    }
    // A new session: no terminal, and a Ctrl-C meant for us does not reach the bot.
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    syscalls::set_limit(Resource::Core, 0)?;
    // The bot must not get descriptors that the worker inherited. The worker's own close at exec.
    let at_exec = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no pointers, and nothing is closed here.
    syscalls::check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, at_exec) })?;
    setup.map_or(Ok(()), PreExecSetup::apply)
}
