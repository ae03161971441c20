//! One program: its pipes, and how it ended.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use arbiter_games::Micros;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};

use super::limits::GRACE;
use super::polling::poll_until;
use super::syscalls::{self, Ended};
use crate::fault::Fault;

/// Pipes of a bot never block the referee.
const NON_BLOCKING: rustix::fs::OFlags = rustix::fs::OFlags::NONBLOCK;

/// Where a program's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// From the referee.
    Pipe,
    /// From nowhere: `/dev/null`.
    Null,
}

/// Why a program did not start, before it is known whose doing that is.
#[derive(Debug)]
pub(super) enum StartError {
    /// The system refused it.
    Refused {
        /// What was to be started.
        program: String,
        /// Why it was not.
        error: io::Error,
    },
    /// The jail is gone with its first process.
    Dead,
    /// Something of ours failed.
    Fault(Fault),
}

impl StartError {
    /// The system refused to start `program`.
    pub(super) fn refused(program: &str, error: io::Error) -> Self {
        Self::Refused { program: program.to_owned(), error }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// What is told of a program that ended so, if it did, when processes of it were killed for a
    /// `cause`.
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

/// How the end of a program is learnt.
#[derive(Debug)]
enum ExitSource {
    /// It is our child: a descriptor of it, and its number.
    Child(OwnedFd, libc::pid_t),
    /// The first process of its jail tells, or is gone itself.
    Notice(File),
}

/// A running program and our ends of its pipes, which never block.
#[derive(Debug)]
pub struct Process {
    watch: ExitSource,
    exit: Option<Exit>,
    /// Its standard input, while we hold it open.
    pub stdin: Option<File>,
    /// Its standard output.
    pub stdout: File,
    /// Its standard error, until it closes it.
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
    /// Takes over our child `pid` and its pipes.
    pub(super) fn child(pid: libc::pid_t, pipes: Pipes) -> io::Result<Self> {
        let number = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
        let pidfd = rustix::process::pidfd_open(number, PidfdFlags::empty())?;
        Self::watched(ExitSource::Child(pidfd, pid), pipes)
    }

    /// Takes over a program whose end is told through `notice`.
    pub(super) fn with_notice(notice: OwnedFd, pipes: Pipes) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&notice, NON_BLOCKING)?;
        Self::watched(ExitSource::Notice(notice.into()), pipes)
    }

    fn watched(watch: ExitSource, pipes: Pipes) -> io::Result<Self> {
        let Pipes { stdin, stdout, stderr } = pipes;
        for pipe in stdin.iter().chain([&stdout, &stderr]) {
            rustix::fs::fcntl_setfl(pipe, NON_BLOCKING)?;
        }
        let (stdin, stderr) = (stdin.map(File::from), Some(stderr.into()));
        Ok(Self { watch, exit: None, stdin, stdout: stdout.into(), stderr })
    }

    /// The number of our child, if it is one.
    pub(super) fn pid(&self) -> Option<libc::pid_t> {
        match self.watch {
            ExitSource::Child(_, pid) => Some(pid),
            ExitSource::Notice(_) => None,
        }
    }

    /// Becomes readable when the program has ended.
    pub fn exit_fd(&self) -> BorrowedFd<'_> {
        match &self.watch {
            ExitSource::Child(pidfd, _) => pidfd.as_fd(),
            ExitSource::Notice(notice) => notice.as_fd(),
        }
    }

    /// How the program ended, once that was reaped.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Waits a while for the program, which was killed, and reaps it: the processor time of it and
    /// of the children it waited for; none if it does not end.
    pub(super) fn wait(&mut self) -> Option<Micros> {
        let ended = poll_until(GRACE, || Ok(self.has_ended())).is_ok_and(|ended| ended);
        ended.then(|| self.reap().map_or(Micros::ZERO, |(_, used)| used))
    }

    fn has_ended(&self) -> bool {
        let mut ended = [PollFd::from_borrowed_fd(self.exit_fd(), PollFlags::IN)];
        rustix::event::poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Reaps the program if it has ended and was not reaped before: how it ended, and the
    /// processor time of it and of the children it waited for.
    pub(super) fn reap(&mut self) -> Option<(Exit, Micros)> {
        if self.exit.is_some() || !self.has_ended() {
            return None;
        }
        let found = match &mut self.watch {
            ExitSource::Child(_, pid) => {
                // Before the number is free again: what it left in its group goes with it.
                syscalls::signal_group(*pid, libc::SIGKILL);
                let Ended { exit, used, .. } = syscalls::reap(*pid)?;
                (exit, used)
            }
            ExitSource::Notice(notice) => {
                let mut bytes = [0; NOTICE];
                match notice.read_exact(&mut bytes) {
                    Ok(()) => from_notice(bytes),
                    // The jail is gone as a whole, killed.
                    Err(_) => (Exit::Signal(libc::SIGKILL), Micros::ZERO),
                }
            }
        };
        self.exit = Some(found.0);
        Some(found)
    }
}

/// How long a notice is, in bytes.
const NOTICE: usize = 16;

/// The end of a program, as the first process of a jail tells it: four bytes whether it was a
/// signal, four bytes the code or the signal, eight bytes processor time, in the machine's order.
pub(super) fn notice(exit: Exit, used: Micros) -> [u8; NOTICE] {
    let (kind, number) = match exit {
        Exit::Code(code) => (0_i32, code),
        Exit::Signal(signal) => (1, signal),
    };
    let parts = [&kind.to_ne_bytes()[..], &number.to_ne_bytes(), &used.0.to_ne_bytes()].concat();
    parts.try_into().expect("four, four and eight are sixteen")
}

/// How a program ended, and the processor time it used, as a notice tells it.
fn from_notice(bytes: [u8; NOTICE]) -> (Exit, Micros) {
    let word = |at: usize| {
        let word = bytes[at..at + 4].first_chunk().expect("four of sixteen bytes");
        i32::from_ne_bytes(*word)
    };
    let used = bytes.last_chunk().expect("eight of sixteen bytes");
    let exit = if word(0) == 1 { Exit::Signal(word(4)) } else { Exit::Code(word(4)) };
    (exit, Micros(i64::from_ne_bytes(*used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_arrives_as_it_was_sent() {
        for exit in [Exit::Code(3), Exit::Signal(9), Exit::Code(255)] {
            let used = Micros(0x1234_5678_9ABC);
            assert_eq!(from_notice(notice(exit, used)), (exit, used));
        }
    }
}
