//! One program: its pipes, and how it ended.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use super::jail_config::GRACE;
use super::polling::poll_until;
use super::syscalls::{self, EndedChild};
use crate::fault::Fault;

/// The referee must never block on a pipe of a bot.
const NON_BLOCKING: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK;

/// Where a program's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// From the referee.
    Pipe,
    /// From `/dev/null`.
    Null,
}

/// Why a program did not start, before the worker decides whether the bot caused it.
#[derive(Debug)]
pub(super) enum StartError {
    /// The system refused to start it.
    Refused {
        /// The program.
        program: String,
        /// The system's error.
        error: io::Error,
    },
    /// The jail's init is gone.
    JailGone,
    /// An operation of the worker failed.
    Fault(Fault),
}

impl StartError {
    /// A refusal to start `program`.
    pub(super) fn refused(program: &str, error: io::Error) -> Self {
        Self::Refused { program: program.to_owned(), error }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The program exited with this code.
    Code(i32),
    /// A signal killed the program.
    Signal(i32),
}

impl Exit {
    /// Describes a program after some of its processes were killed for `cause`. `exit` is the end
    /// of the program itself, if it has ended.
    pub(crate) fn by(cause: &str, exit: Option<Self>) -> String {
        match exit {
            Some(Self::Signal(libc::SIGKILL)) => cause.to_owned(),
            Some(exit) => format!("{exit} after a process of it was {cause}"),
            None => format!("a process of it was {cause}"),
        }
    }
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

/// Where the worker gets the exit of a program from.
#[derive(Debug)]
enum ExitSource {
    /// The program is our child, with this pidfd and pid.
    Child(OwnedFd, libc::pid_t),
    /// The jail's init writes a notice to this pipe. If init ends, it closes the pipe.
    Notice(File),
}

/// A running program and our ends of its pipes, which never block.
#[derive(Debug)]
pub struct Process {
    exit_source: ExitSource,
    exit: Option<Exit>,
    /// Its standard input, until the worker closes it.
    pub stdin: Option<File>,
    /// Its standard output.
    pub stdout: File,
    /// Its standard error, until the program closes it.
    pub stderr: Option<File>,
}

/// Our ends of a program's pipes.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Process {
    /// Wraps our child `pid` and its pipes.
    pub(super) fn from_child(pid: libc::pid_t, pipes: Pipes) -> io::Result<Self> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty())?;
        Self::with_exit_source(ExitSource::Child(pidfd, pid), pipes)
    }

    /// Wraps a program whose exit arrives through the pipe `notice`.
    pub(super) fn with_notice(notice: OwnedFd, pipes: Pipes) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&notice, NON_BLOCKING)?;
        Self::with_exit_source(ExitSource::Notice(notice.into()), pipes)
    }

    fn with_exit_source(exit_source: ExitSource, pipes: Pipes) -> io::Result<Self> {
        let Pipes { stdin, stdout, stderr } = pipes;
        for pipe in stdin.iter().chain([&stdout, &stderr]) {
            rustix::fs::fcntl_setfl(pipe, NON_BLOCKING)?;
        }
        let stdin = stdin.map(File::from);
        let stderr = Some(stderr.into());
        Ok(Self { exit_source, exit: None, stdin, stdout: stdout.into(), stderr })
    }

    /// The pid of the program if it is our child.
    pub(super) fn pid(&self) -> Option<libc::pid_t> {
        match self.exit_source {
            ExitSource::Child(_, pid) => Some(pid),
            ExitSource::Notice(_) => None,
        }
    }

    /// A descriptor that becomes readable when the program has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        match &self.exit_source {
            ExitSource::Child(pidfd, _) => pidfd.as_fd(),
            ExitSource::Notice(notice) => notice.as_fd(),
        }
    }

    /// How the program ended, once it is reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits for the killed program and reaps it. Returns the processor time of the program and of
    /// the children that it waited for; none if it does not end.
    pub(super) fn wait(&mut self) -> Option<Micros> {
        let has_ended = poll_until(GRACE, || Ok(self.has_ended())).is_ok_and(|ended| ended);
        has_ended.then(|| self.reap().map_or(Micros::ZERO, |(_, cpu_time)| cpu_time))
    }

    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.exit_fd(), PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Reaps the program if it has ended and was not reaped. Returns how it ended, and the
    /// processor time of the program and of the children that it waited for.
    pub(super) fn reap(&mut self) -> Option<(Exit, Micros)> {
        if self.exit.is_some() || !self.has_ended() {
            return None;
        }
        let exit_and_time = match &mut self.exit_source {
            ExitSource::Child(_, pid) => {
                // Kill its process group before another process can get the pid.
                syscalls::signal_group(*pid, libc::SIGKILL);
                let EndedChild { exit, cpu_time, .. } = syscalls::reap(*pid)?;
                (exit, cpu_time)
            }
            ExitSource::Notice(notice) => {
                let mut bytes = [0; NOTICE_LENGTH];
                match notice.read_exact(&mut bytes) {
                    Ok(()) => parse_notice(bytes),
                    // The whole jail was killed, including its init.
                    Err(_) => (Exit::Signal(libc::SIGKILL), Micros::ZERO),
                }
            }
        };
        self.exit = Some(exit_and_time.0);
        Some(exit_and_time)
    }
}

/// The length of a notice, in bytes.
const NOTICE_LENGTH: usize = 16;

/// The end of a program as init writes it, in native byte order: four bytes (1 for a signal, else
/// 0), four bytes exit code or signal, eight bytes processor time in microseconds.
pub(super) fn encode_notice(exit: Exit, cpu_time: Micros) -> [u8; NOTICE_LENGTH] {
    let (kind, number) = match exit {
        Exit::Code(code) => (0_i32, code),
        Exit::Signal(signal) => (1, signal),
    };
    let parts =
        [&kind.to_ne_bytes()[..], &number.to_ne_bytes(), &cpu_time.0.to_ne_bytes()].concat();
    parts.try_into().expect("four, four and eight are sixteen")
}

/// Parses a notice: how a program ended, and its processor time.
fn parse_notice(bytes: [u8; NOTICE_LENGTH]) -> (Exit, Micros) {
    let number_at = |offset: usize| {
        let number = bytes[offset..offset + 4].first_chunk().expect("four of sixteen bytes");
        i32::from_ne_bytes(*number)
    };
    let cpu_time = bytes.last_chunk().expect("eight of sixteen bytes");
    let is_signal = number_at(0) == 1;
    let exit = if is_signal { Exit::Signal(number_at(4)) } else { Exit::Code(number_at(4)) };
    (exit, Micros(i64::from_ne_bytes(*cpu_time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_parsed_as_it_was_encoded() {
        for exit in [Exit::Code(3), Exit::Signal(9), Exit::Code(255)] {
            let cpu_time = Micros(0x1234_5678_9ABC);
            assert_eq!(parse_notice(encode_notice(exit, cpu_time)), (exit, cpu_time));
        }
    }
}
