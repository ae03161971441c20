//! Programs without walls: children of ours in sessions of their own.

#![expect(unsafe_code, reason = "the steps between fork and exec are the caller's to keep safe")]

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

use super::fence::Fence;
use super::limits::{ADDRESSES, Terms};
use super::process::{Pipes, Process, StartError, Stdin};
use super::{WRITING, search_path, sys};
use crate::fault::Fault;

/// What is set on a program between fork and exec.
#[derive(Clone, Debug)]
pub(super) struct Restraint {
    fence: Arc<Fence>,
    limits: Vec<(Resource, u64)>,
    cores: CpuSet,
}

impl Restraint {
    /// A fence, and what limits single processes.
    pub(super) fn new(fence: Fence, terms: &Terms) -> Self {
        let Terms { limits, cores, .. } = terms;
        let mut most = vec![
            (Resource::Nofile, limits.descriptors),
            (Resource::Fsize, limits.disk.0),
            (Resource::As, ADDRESSES),
            (Resource::Data, limits.memory.0),
        ];
        if fence.user.is_some() {
            most.push((Resource::Nproc, limits.processes.into()));
        }
        Self { fence: Arc::new(fence), limits: most, cores: sys::processors(cores) }
    }

    /// Takes hold of the calling process. Allocates nothing.
    fn take_hold(&self) -> io::Result<()> {
        for (resource, most) in &self.limits {
            sys::limit(*resource, *most)?;
        }
        rustix::thread::sched_setaffinity(None, &self.cores)?;
        self.fence.close()
    }
}

/// The processes of one jail that are children of ours, and the processor time they used.
///
/// The clock of each live one, with all its threads, and what ended ones and their waited-for
/// children used. A live grandchild, and one that nobody waited for, escapes: only a control
/// group counts those.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// Started here and not yet known to have ended.
    pub(super) live: Vec<libc::pid_t>,
    /// What ended ones used.
    ended: Micros,
}

impl Children {
    /// Starts a program and counts it in.
    pub(super) fn start(
        &mut self,
        argv: &[String],
        home: &Path,
        stdin: Stdin,
        procs: &[File],
        restraint: Option<&Restraint>,
    ) -> Result<Process, StartError> {
        let process = start(argv, home, stdin, procs, restraint)?;
        self.live.extend(process.pid());
        Ok(process)
    }

    /// Takes note that `process` was reaped, having used so much processor time.
    pub(super) fn retire(&mut self, process: &Process, used: Micros) {
        self.live.retain(|pid| process.pid() != Some(*pid));
        self.ended += used;
    }

    /// What all of them used so far.
    pub(super) fn cpu(&self) -> Micros {
        self.ended + self.cpu_of_live()
    }

    /// What the live ones used, without children of theirs.
    pub(super) fn cpu_of_live(&self) -> Micros {
        self.live.iter().fold(Micros::ZERO, |sum, pid| sum + sys::clock(*pid))
    }

    /// Kills the group of each.
    pub(super) fn kill(&self) {
        self.signal(libc::SIGKILL);
    }

    /// Sends a signal to the group of each.
    pub(super) fn signal(&self, signal: libc::c_int) {
        self.live.iter().for_each(|pid| sys::signal_group(*pid, signal));
    }

    /// Whether all have ended. Their numbers stay theirs.
    pub(super) fn are_dead(&self) -> bool {
        self.live.iter().all(|pid| sys::has_ended(*pid))
    }

    /// Gives up the numbers of those that have ended.
    pub(super) fn bury(&mut self) {
        self.live.retain(|pid| sys::reap(*pid).is_none());
    }
}

/// Starts `argv` in the directory `home`; it joins the control groups behind `procs` before it
/// runs its first instruction of its own.
#[expect(clippy::disallowed_methods, reason = "this is the sandbox")]
fn start(
    argv: &[String],
    home: &Path,
    stdin: Stdin,
    procs: &[File],
    restraint: Option<&Restraint>,
) -> Result<Process, StartError> {
    let (program, arguments) = argv.split_first().expect("a manifest's command is never empty");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin == Stdin::Pipe { Stdio::piped() } else { Stdio::null() });
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").env("TMPDIR", home);
    command.env("PATH", search_path());
    let procs: Vec<RawFd> = procs.iter().map(File::as_raw_fd).collect();
    let restraint = restraint.cloned();
    // SAFETY: `prelude` makes only async-signal-safe system calls and allocates nothing, as is
    // due in a child forked from a process with threads. The descriptors stay open: the caller
    // holds the groups, and they are inherited by fork although exec closes them.
    unsafe { command.pre_exec(move || prelude(&procs, restraint.as_ref())) };
    let spawned = {
        let _no_writing = WRITING.write().unwrap_or_else(PoisonError::into_inner);
        command.spawn()
    };
    let mut child = spawned.map_err(|error| StartError::refused(program, error))?;
    let pid = libc::pid_t::try_from(child.id()).expect("a process number is a pid_t");
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdin, Some(stdout), Some(stderr)) = taken else {
        unreachable!("both pipes were asked for");
    };
    let stdin = stdin.map(OwnedFd::from);
    let pipes = Pipes { stdin, stdout: stdout.into(), stderr: stderr.into() };
    Process::child(pid, pipes).map_err(|error| {
        sys::signal_group(pid, libc::SIGKILL);
        sys::wait_for(pid);
        StartError::Fault(Fault::new("cannot watch a bot's process", error))
    })
}

/// Runs in the child between fork and exec.
fn prelude(procs: &[RawFd], restraint: Option<&Restraint>) -> io::Result<()> {
    for procs in procs {
        // SAFETY: one byte is written, of a text that lives as long as the program.
        if unsafe { libc::write(*procs, b"0".as_ptr().cast(), 1) } != 1 {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
    }
    // A session of its own: no terminal, and a Ctrl-C meant for us does not reach the bot.
    rustix::process::setsid()?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    sys::limit(Resource::Core, 0)?;
    // What we inherited ourselves is not the bot's; what is ours closes at exec anyway.
    let at_exec = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: no pointers, and nothing is closed here.
    sys::check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, at_exec) })?;
    restraint.map_or(Ok(()), Restraint::take_hold)
}
