//! One program: started, watched, killed and reaped.

#![expect(
    unsafe_code,
    reason = "the steps between fork and exec, and wait4 and the processor clock of another \
              process, are system calls that the standard library does not offer"
)]

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::PoisonError;

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use super::WRITING;
use crate::fault::Fault;

/// Pipes of a bot never block the referee.
const NON_BLOCKING: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK;

/// The system's folders of programs.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Closes descriptors when the program is executed: until then the standard library needs one.
const CLOSE_ON_EXEC: libc::c_int = libc::CLOSE_RANGE_CLOEXEC.cast_signed();

/// Where a program's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// From the referee.
    Pipe,
    /// From nowhere: `/dev/null`.
    Null,
}

/// Why a program did not start.
#[derive(Debug)]
pub enum NoStart {
    /// It cannot be run: the reason, for its author.
    Bot(String),
    /// Something of ours failed.
    Fault(Fault),
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// Names of the signals that end programs.
const SIGNALS: [(i32, &str); 16] = [
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGSYS, "SIGSYS"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
];

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(number) => {
                match SIGNALS.into_iter().find(|(signal, _)| signal == number) {
                    Some((_, name)) => write!(f, "was killed by {name}"),
                    None => write!(f, "was killed by signal {number}"),
                }
            }
        }
    }
}

/// A running program and our ends of its pipes, which never block.
#[derive(Debug)]
pub struct Process {
    pid: libc::pid_t,
    ended: OwnedFd,
    exit: Option<Exit>,
    /// Its standard input, while we hold it open.
    pub stdin: Option<File>,
    /// Its standard output.
    pub stdout: File,
    /// Its standard error, until it closes it.
    pub stderr: Option<File>,
}

impl Process {
    pub(super) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Becomes readable when the program has ended.
    pub fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// How the program ended, once that was reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits for the program, which was killed, and reaps it: its processor time and that of the
    /// children it waited for.
    pub(super) fn wait(&mut self) -> Micros {
        let found = wait4(self.pid, 0);
        self.exit = found.map(|(exit, _)| exit);
        found.map_or(Micros::ZERO, |(_, used)| used)
    }

    fn has_ended(&self) -> bool {
        let mut ended = [PollFd::new(&self.ended, PollFlags::IN)];
        rustix::event::poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Reaps the program if it has ended and was not reaped before: how it ended, and the
    /// processor time of it and of the children it waited for.
    pub(super) fn reap(&mut self) -> Option<(Exit, Micros)> {
        if self.exit.is_some() || !self.has_ended() {
            return None;
        }
        // Before the number is free again: what it left behind in its group goes with it.
        kill_group(self.pid);
        let found = wait4(self.pid, libc::WNOHANG)?;
        self.exit = Some(found.0);
        Some(found)
    }
}

/// Starts `argv` in the directory `home`; it joins the control group behind `procs` before it
/// runs its first instruction of its own.
#[expect(clippy::disallowed_methods, reason = "this is the sandbox")]
pub(super) fn start(
    argv: &[String],
    home: &Path,
    stdin: Stdin,
    procs: Option<&File>,
) -> Result<Process, NoStart> {
    let (program, arguments) = argv.split_first().expect("a manifest's command is never empty");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(home).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if stdin == Stdin::Pipe { Stdio::piped() } else { Stdio::null() });
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").env("TMPDIR", home);
    command.env("PATH", search_path());
    let procs = procs.map(File::as_raw_fd);
    // SAFETY: `prelude` makes only async-signal-safe system calls and allocates nothing, as is
    // due in a child forked from a process with threads. `procs` stays open: the caller's group
    // outlives the call, and the descriptor is inherited by fork although exec closes it.
    unsafe { command.pre_exec(move || prelude(procs)) };
    let spawned = {
        let _no_writing = WRITING.write().unwrap_or_else(PoisonError::into_inner);
        command.spawn()
    };
    let mut child = spawned.map_err(|error| refusal(program, &error))?;
    let pid = libc::pid_t::try_from(child.id()).expect("a process number is a pid_t");
    let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (stdin, Some(stdout), Some(stderr)) = taken else {
        unreachable!("both pipes were asked for");
    };
    adopt(pid, stdin.map(OwnedFd::from), stdout.into(), stderr.into()).map_err(|error| {
        kill_group(pid);
        wait(pid);
        NoStart::Fault(Fault::new("cannot watch a bot's process", error))
    })
}

/// Where bots find programs: the system's folders first, which hold interpreters themselves and
/// not the shims of version managers; then whatever folders we were given.
pub(crate) fn search_path() -> OsString {
    let mut path = OsString::from(SYSTEM_PATH);
    if let Some(ours) = std::env::var_os("PATH") {
        path.push(":");
        path.push(ours);
    }
    path
}

/// Takes over a started program's pipes.
fn adopt(
    pid: libc::pid_t,
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: OwnedFd,
) -> io::Result<Process> {
    let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    let ended = rustix::process::pidfd_open(number, PidfdFlags::empty())?;
    for pipe in stdin.iter().chain([&stdout, &stderr]) {
        rustix::fs::fcntl_setfl(pipe, NON_BLOCKING)?;
    }
    let stdin = stdin.map(File::from);
    Ok(Process {
        pid,
        ended,
        exit: None,
        stdin,
        stdout: stdout.into(),
        stderr: Some(stderr.into()),
    })
}

/// Tells a program that cannot be run from a machine that cannot run programs.
fn refusal(program: &str, error: &io::Error) -> NoStart {
    let ours = [libc::EAGAIN, libc::EBUSY, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ETXTBSY];
    if error.raw_os_error().is_some_and(|code| ours.contains(&code)) {
        NoStart::Fault(Fault::new(format!("cannot start {program}"), error))
    } else {
        NoStart::Bot(format!("{program} could not be started: {error}"))
    }
}

/// Runs in the child between fork and exec.
fn prelude(procs: Option<RawFd>) -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain system calls on arguments that live in this frame.
    unsafe {
        if let Some(procs) = procs
            && libc::write(procs, b"0".as_ptr().cast(), 1) != 1
        {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        // A session of its own: no terminal, and a Ctrl-C meant for us does not reach the bot.
        check(libc::setsid())?;
        // Whatever our parent left open in us is none of the bot's business.
        check(libc::close_range(3, libc::c_uint::MAX, CLOSE_ON_EXEC))?;
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        check(libc::setrlimit(libc::RLIMIT_CORE, &raw const none))
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Kills the session's process group that `pid` leads.
pub(super) fn kill_group(pid: libc::pid_t) {
    // SAFETY: a system call without pointers; `pid` is a child of ours that was not reaped, so
    // its number cannot have been given to another process.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
}

/// Waits until the killed child `pid` is gone.
pub(super) fn wait(pid: libc::pid_t) {
    wait4(pid, 0);
}

/// Reaps `pid`: how it ended, and the processor time of it and its waited-for children.
fn wait4(pid: libc::pid_t, options: libc::c_int) -> Option<(Exit, Micros)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of that plain structure.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of this frame.
        let found = unsafe { libc::wait4(pid, &raw mut status, options, &raw mut usage) };
        if found < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            continue;
        }
        if found != pid {
            return None;
        }
        break;
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    let micros = |time: libc::timeval| Micros(time.tv_sec * 1_000_000 + time.tv_usec);
    Some((exit, micros(usage.ru_utime) + micros(usage.ru_stime)))
}

/// The processor time of the live process `pid` and all its threads.
pub(super) fn clock(pid: libc::pid_t) -> Micros {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls write to live values of this frame; a process that is gone is an error
    // that they report.
    let known = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    if known { Micros(time.tv_sec * 1_000_000 + time.tv_nsec / 1000) } else { Micros::ZERO }
}
