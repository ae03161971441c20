//! Jails with walls, as the worker sees them: it asks its launcher for each, tells the jail's
//! first process what to do, and outlives both.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::sockopt::{self, Timeout};
use rustix::pipe::PipeFlags;
use rustix::process::Signal;

use super::cgroup::Cgroup;
use super::process::{Pipes, Process, StartError, Stdin};
use super::store::Store;
use super::wire::{self, Answer, Order, Report, Settlement, Task};
use super::{canary, init, launcher};
use crate::fault::{Context as _, Fault};

/// How long our own processes may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The first of the users that bots are, where the worker may choose: no system gives these
/// numbers to anybody. It is the one who builds jails.
pub(super) const FIRST_USER: u32 = 0x7000_0000;

/// How many users there are for bots; each jail has another, until they begin anew.
pub(super) const USERS: u32 = 60_000;

/// The launcher, and what every jail needs.
#[derive(Debug)]
pub(super) struct Walls {
    launcher: Mutex<Launcher>,
    /// Where programs are kept for jails.
    pub(super) store: Store,
    /// Whether bots are users of their own, and not the worker's.
    pub(super) two_users: bool,
}

#[derive(Debug)]
struct Launcher {
    process: Child,
    socket: OwnedFd,
}

impl Walls {
    /// Starts the launcher: with users of their own for bots, if `two_users`.
    pub(super) fn raise(two_users: bool) -> Result<Self, String> {
        let explain = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let store = Store::new(two_users.then_some(FIRST_USER))
            .map_err(explain("cannot make a store of programs"))?;
        let (socket, theirs) = wire::pair().map_err(explain("cannot make a socket"))?;
        limit_waiting(&socket).map_err(explain("cannot make a socket"))?;
        let process = spawn(theirs).map_err(explain("cannot start the launcher"))?;
        let launcher = Launcher { process, socket };
        launcher.expect(&Report::Apart)?;
        launcher.map_users(two_users).map_err(explain("cannot map users"))?;
        let users = if two_users { USERS } else { 0 };
        let order = Order::Build { store: store.path(), users };
        wire::send(&launcher.socket, &order, &[]).map_err(|error| error.to_string())?;
        launcher.expect(&Report::Ready)?;
        Ok(Self { launcher: Mutex::new(launcher), store, two_users })
    }

    /// Opens a jail in the control group `group`.
    pub(super) fn open(
        self: &Arc<Self>,
        group: &Cgroup,
        settlement: Settlement,
    ) -> Result<Cell, Fault> {
        let freezer = group.keeps_the_dead().fault("cannot open a control group")?;
        let launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = launcher.open(self, freezer.as_ref());
        drop(launcher);
        let mut cell = opened?;
        limit_waiting(&cell.socket).fault("cannot set up a socket")?;
        group.enter(cell.pid)?;
        cell.settle(settlement)?;
        Ok(cell)
    }
}

/// Has us not wait for ever for the other side.
fn limit_waiting(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE))?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, Some(PATIENCE))?)
}

#[expect(clippy::disallowed_methods, reason = "this is the sandbox")]
fn spawn(socket: OwnedFd) -> io::Result<Child> {
    Command::new("/proc/self/exe")
        .arg0(launcher::NAME)
        .env_clear()
        .env("PATH", init::PATH)
        .current_dir("/")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .spawn()
}

impl Launcher {
    /// Waits until it says that a step is done.
    fn expect(&self, due: &Report) -> Result<(), String> {
        let what = "cannot hear the launcher of jails";
        match wire::receive(&self.socket).map_err(|error| format!("{what}: {error}"))? {
            Some((report, _)) if report == *due => Ok(()),
            Some((Report::Failed(why), _)) => Err(why),
            Some((other, _)) => Err(format!("the launcher said {other:?}")),
            None => Err(format!("{what}: it is gone")),
        }
    }

    /// Maps users of the launcher's namespace: many, or this process's own.
    fn map_users(&self, two_users: bool) -> io::Result<()> {
        let process = format!("/proc/{}", self.process.id());
        let write = |file: &str, text: String| fs::write(format!("{process}/{file}"), text);
        if two_users {
            let map = format!("0 {FIRST_USER} {}\n", USERS + 1);
            write("uid_map", map.clone())?;
            return write("gid_map", map);
        }
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("0 {} 1\n", rustix::process::geteuid().as_raw()))?;
        write("gid_map", format!("0 {} 1\n", rustix::process::getegid().as_raw()))
    }

    /// Has a jail handed over, which nothing is built in yet.
    fn open(&self, walls: &Arc<Walls>, freezer: Option<&File>) -> Result<Cell, Fault> {
        let what = "cannot open a jail";
        let beside: Vec<_> = freezer.map(File::as_fd).into_iter().collect();
        wire::send(&self.socket, &Order::Open, &beside).fault("the launcher of jails is gone")?;
        match wire::receive(&self.socket).fault(what)? {
            Some((Report::Opened { pid, user }, descriptors)) => {
                let descriptors = <[OwnedFd; 2]>::try_from(descriptors);
                let [pidfd, socket] = descriptors
                    .map_err(|_| Fault::new(what, "a descriptor is missing; is there room?"))?;
                Ok(Cell {
                    socket,
                    pidfd,
                    pid,
                    written: None,
                    door: None,
                    user: walls.two_users.then_some(FIRST_USER + user),
                    was_used: AtomicBool::new(false),
                    is_silent: AtomicBool::new(false),
                    _walls: Arc::clone(walls),
                })
            }
            Some((Report::Failed(why), _)) => Err(Fault::new(what, why)),
            other => Err(Fault::new(what, format!("heard {other:?}"))),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Every jail has ended: each holds the walls.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A jail with walls, from outside.
#[derive(Debug)]
pub(super) struct Cell {
    socket: OwnedFd,
    pidfd: OwnedFd,
    /// The number of the first process, while that is there.
    pub(super) pid: libc::pid_t,
    /// What the bot writes in its working directory, where the worker keeps it.
    written: Option<OwnedFd>,
    /// Where the bot reaches the worker, if it may and nobody has taken it yet.
    pub(super) door: Option<OwnedFd>,
    /// The user that the bot is to the machine, if not the worker's own.
    user: Option<u32>,
    /// Whether a program of the bot was started here.
    was_used: AtomicBool,
    /// Whether the first process did not answer in time since then. It is asked nothing more: a late
    /// answer would be taken for that to another task.
    is_silent: AtomicBool,
    /// The launcher outlives its jails.
    _walls: Arc<Walls>,
}

impl Cell {
    fn settle(&mut self, settlement: Settlement) -> Result<(), Fault> {
        let (keeps_files, has_door) = (settlement.keeps_files, settlement.has_door);
        let task = Task::Settle(Box::new(settlement));
        wire::send(&self.socket, &task, &[]).fault("cannot build a jail")?;
        match wire::receive(&self.socket).fault("cannot build a jail")? {
            Some((Answer::Done, handed)) => {
                let mut handed = handed.into_iter();
                self.written = if keeps_files { handed.next() } else { None };
                self.door = if has_door { handed.next() } else { None };
                Ok(())
            }
            Some((Answer::Failed(why), _)) => Err(Fault::new("cannot build a jail", why)),
            other => Err(Fault::new("cannot build a jail", format!("heard {other:?}"))),
        }
    }

    /// The directory with what the bot wrote, if it is kept, and whose it is.
    pub(super) fn written(&self) -> Option<(&OwnedFd, Option<u32>)> {
        Some((self.written.as_ref()?, self.user))
    }

    /// Whether the first process did not answer in time after the bot had used the jail.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Has a task done; none is the answer of a jail that was killed, or that a bot has used and that
    /// does not answer in time: the latter is killed. If no bot has used it, that is a fault.
    pub(super) fn ask(&self, task: &Task) -> Result<Option<Answer>, Fault> {
        self.ask_with(task, &[])
    }

    fn ask_with(&self, task: &Task, beside: &[BorrowedFd<'_>]) -> Result<Option<Answer>, Fault> {
        if self.is_silent() {
            return Ok(None);
        }
        match wire::send(&self.socket, task, beside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            Err(error) => return self.without_answer("cannot reach a jail", error),
        }
        // A machine that stood still goes on for both sides at once: then the answer comes while it
        // is waited for once more.
        let answer = wire::receive(&self.socket).or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock => wire::receive(&self.socket),
            _ => Err(error),
        });
        match answer {
            Ok(answer) => Ok(answer.map(|(answer, _)| answer)),
            Err(error) => self.without_answer("cannot hear a jail", error),
        }
    }

    /// What it comes to that the first process gave no answer: once a bot has used its jail, silence
    /// is the bot's doing, which could otherwise make its match void whenever it likes.
    fn without_answer(&self, what: &str, error: io::Error) -> Result<Option<Answer>, Fault> {
        let is_late = error.kind() == io::ErrorKind::WouldBlock;
        if !is_late || !self.was_used.load(Ordering::Relaxed) {
            return Err(Fault::new(what, error));
        }
        self.is_silent.store(true, Ordering::Relaxed);
        self.kill();
        Ok(None)
    }

    /// Starts a program.
    pub(super) fn start(&self, argv: &[String], stdin: Stdin) -> Result<Process, StartError> {
        let system = |error| StartError::Fault(Fault::new("cannot make a pipe for a bot", error));
        let (pipes, notice, theirs) = pipes(stdin).map_err(system)?;
        let task = Task::Start { argv: argv.to_vec() };
        let beside: Vec<_> = theirs.iter().map(OwnedFd::as_fd).collect();
        match self.ask_with(&task, &beside) {
            Err(Fault::System { cause, .. }) if cause.contains("os error 7") => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(libc::E2BIG)))
            }
            Err(fault) => Err(StartError::Fault(fault)),
            Ok(Some(Answer::Started(_))) => {
                self.was_used.store(true, Ordering::Relaxed);
                Process::told(notice, pipes).map_err(system)
            }
            Ok(Some(Answer::NotStarted(number))) => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(number)))
            }
            Ok(None) => Err(StartError::Dead),
            Ok(other) => {
                let heard = format!("heard {other:?}");
                Err(StartError::Fault(Fault::new("cannot start a bot", heard)))
            }
        }
    }

    /// Attacks the walls from within; the results come from the process's output.
    pub(super) fn attack(&self, plan: canary::Plan) -> Result<Process, Fault> {
        let made = pipes(Stdin::Null).fault("cannot make a pipe")?;
        let (pipes, notice, theirs) = made;
        let beside: Vec<_> = theirs.iter().map(OwnedFd::as_fd).collect();
        match self.ask_with(&Task::Attack(Box::new(plan)), &beside)? {
            Some(Answer::Started(_)) => Process::told(notice, pipes).fault("cannot watch a canary"),
            other => Err(Fault::new("cannot start a canary", format!("heard {other:?}"))),
        }
    }

    /// Kills the first process, and with it everything in its namespace.
    pub(super) fn kill(&self) {
        let _dead_already = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for the first process, which is the last to go: whether it is gone.
    pub(super) fn is_gone_within(&self, limit: Duration) -> bool {
        let began = Instant::now();
        loop {
            let mut gone = [PollFd::new(&self.pidfd, PollFlags::IN)];
            let left = limit.saturating_sub(began.elapsed());
            let left = Timespec::try_from(left).expect("a short time");
            match rustix::event::poll(&mut gone, Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// Whether what it is asked about is so; it is if nobody is left to ask.
    pub(super) fn is(&self, task: &Task) -> Result<bool, Fault> {
        match self.ask(task)? {
            None => Ok(true),
            Some(Answer::Is(so)) => Ok(so),
            other => Err(Fault::new("cannot hear a jail", format!("heard {other:?}"))),
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        // One that was not furnished to its end is not left to find out by itself.
        self.kill();
    }
}

/// Pipes for a program: our ends, where its end is told, and its ends in the order of a task.
fn pipes(stdin: Stdin) -> io::Result<(Pipes, OwnedFd, Vec<OwnedFd>)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let mut theirs = Vec::with_capacity(4);
    let stdin = if stdin == Stdin::Pipe {
        let (read, write) = pipe()?;
        theirs.push(read);
        Some(write)
    } else {
        None
    };
    let (stdout, write) = pipe()?;
    theirs.push(write);
    let (stderr, write) = pipe()?;
    theirs.push(write);
    let (notice, write) = pipe()?;
    theirs.push(write);
    Ok((Pipes { stdin, stdout, stderr }, notice, theirs))
}
