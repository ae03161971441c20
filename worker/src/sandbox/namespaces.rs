//! Jails with factory, as the worker sees them: it asks its launcher for each, tells the jail's
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
use super::ipc::{self, InitRequest, InitResponse, JailSetup, LauncherRequest, LauncherResponse};
use super::process::{Pipes, Process, StartError, Stdin};
use super::program_store::ProgramStore;
use super::{init, launcher, self_test};
use crate::fault::{Context as _, Fault};

/// How long our own processes may take to response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first of the users that bots are, where the worker may choose: no system gives these
/// numbers to anybody. It is the one who builds jails.
pub(super) const FIRST_UID: u32 = 0x7000_0000;

/// How many users there are for bots; each jail has another, until they begin anew.
pub(super) const UID_COUNT: u32 = 60_000;

/// The launcher, and what every jail needs.
#[derive(Debug)]
pub(super) struct JailFactory {
    launcher: Mutex<LauncherProcess>,
    /// Where programs are kept for jails.
    pub(super) store: ProgramStore,
    /// Whether bots are users of their own, and not the worker's.
    pub(super) separate_users: bool,
}

#[derive(Debug)]
struct LauncherProcess {
    process: Child,
    socket: OwnedFd,
}

impl JailFactory {
    /// Starts the launcher: with users of their own for bots, if `separate_users`.
    pub(super) fn start(separate_users: bool) -> Result<Self, String> {
        let explain = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let store = ProgramStore::new(separate_users.then_some(FIRST_UID))
            .map_err(explain("cannot make a store of programs"))?;
        let (socket, theirs) = ipc::pair().map_err(explain("cannot make a socket"))?;
        set_timeouts(&socket).map_err(explain("cannot make a socket"))?;
        let process = spawn(theirs).map_err(explain("cannot start the launcher"))?;
        let launcher = LauncherProcess { process, socket };
        launcher.expect(&LauncherResponse::Unshared)?;
        launcher.map_users(separate_users).map_err(explain("cannot map users"))?;
        let users = if separate_users { UID_COUNT } else { 0 };
        let order = LauncherRequest::Build { store: store.path(), users };
        ipc::send(&launcher.socket, &order, &[]).map_err(|error| error.to_string())?;
        launcher.expect(&LauncherResponse::Ready)?;
        Ok(Self { launcher: Mutex::new(launcher), store, separate_users })
    }

    /// Opens a jail in the control group `group`.
    pub(super) fn open(
        self: &Arc<Self>,
        group: &Cgroup,
        setup: JailSetup,
    ) -> Result<NamespaceJail, Fault> {
        let freezer = group.thaw_file().fault("cannot open a control group")?;
        let launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = launcher.open(self, freezer.as_ref());
        drop(launcher);
        let mut cell = opened?;
        set_timeouts(&cell.socket).fault("cannot set up a socket")?;
        group.add_process(cell.pid)?;
        cell.build(setup)?;
        Ok(cell)
    }
}

/// Has us not wait for ever for the other side.
fn set_timeouts(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(RESPONSE_TIMEOUT))?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, Some(RESPONSE_TIMEOUT))?)
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

impl LauncherProcess {
    /// Waits until it says that a step is done.
    fn expect(&self, due: &LauncherResponse) -> Result<(), String> {
        let what = "cannot hear the launcher of jails";
        match ipc::receive(&self.socket).map_err(|error| format!("{what}: {error}"))? {
            Some((report, _)) if report == *due => Ok(()),
            Some((LauncherResponse::Failed(why), _)) => Err(why),
            Some((other, _)) => Err(format!("the launcher said {other:?}")),
            None => Err(format!("{what}: it is gone")),
        }
    }

    /// Maps users of the launcher's namespace: many, or this process's own.
    fn map_users(&self, separate_users: bool) -> io::Result<()> {
        let process = format!("/proc/{}", self.process.id());
        let write = |file: &str, text: String| fs::write(format!("{process}/{file}"), text);
        if separate_users {
            let map = format!("0 {FIRST_UID} {}\n", UID_COUNT + 1);
            write("uid_map", map.clone())?;
            return write("gid_map", map);
        }
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("0 {} 1\n", rustix::process::geteuid().as_raw()))?;
        write("gid_map", format!("0 {} 1\n", rustix::process::getegid().as_raw()))
    }

    /// Has a jail handed over, which nothing is built in yet.
    fn open(
        &self,
        factory: &Arc<JailFactory>,
        freezer: Option<&File>,
    ) -> Result<NamespaceJail, Fault> {
        let what = "cannot open a jail";
        let descriptors: Vec<_> = freezer.map(File::as_fd).into_iter().collect();
        ipc::send(&self.socket, &LauncherRequest::Open, &descriptors)
            .fault("the launcher of jails is gone")?;
        match ipc::receive(&self.socket).fault(what)? {
            Some((LauncherResponse::Opened { pid, user }, descriptors)) => {
                let descriptors = <[OwnedFd; 2]>::try_from(descriptors);
                let [pidfd, socket] = descriptors
                    .map_err(|_| Fault::new(what, "a descriptor is missing; is there room?"))?;
                Ok(NamespaceJail {
                    socket,
                    pidfd,
                    pid,
                    upper_dir: None,
                    listener: None,
                    user: factory.separate_users.then_some(FIRST_UID + user),
                    was_used: AtomicBool::new(false),
                    is_silent: AtomicBool::new(false),
                    _walls: Arc::clone(factory),
                })
            }
            Some((LauncherResponse::Failed(why), _)) => Err(Fault::new(what, why)),
            other => Err(Fault::new(what, format!("heard {other:?}"))),
        }
    }
}

impl Drop for LauncherProcess {
    fn drop(&mut self) {
        // Every jail has ended: each holds the factory.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A jail with factory, from outside.
#[derive(Debug)]
pub(super) struct NamespaceJail {
    socket: OwnedFd,
    pidfd: OwnedFd,
    /// The number of the first process, while that is there.
    pub(super) pid: libc::pid_t,
    /// What the bot writes in its working directory, where the worker keeps it.
    upper_dir: Option<OwnedFd>,
    /// Where the bot reaches the worker, if it may and nobody has taken it yet.
    pub(super) listener: Option<OwnedFd>,
    /// The user that the bot is to the machine, if not the worker's own.
    user: Option<u32>,
    /// Whether a program of the bot was started here.
    was_used: AtomicBool,
    /// Whether the first process did not response in time since then. It is asked nothing more: a late
    /// response would be taken for that to another task.
    is_silent: AtomicBool,
    /// The launcher outlives its jails.
    _walls: Arc<JailFactory>,
}

impl NamespaceJail {
    fn build(&mut self, setup: JailSetup) -> Result<(), Fault> {
        let (saves_state, needs_listener) = (setup.saves_state, setup.needs_listener);
        let task = InitRequest::Build(Box::new(setup));
        ipc::send(&self.socket, &task, &[]).fault("cannot build a jail")?;
        match ipc::receive(&self.socket).fault("cannot build a jail")? {
            Some((InitResponse::Done, handed)) => {
                let mut handed = handed.into_iter();
                self.upper_dir = if saves_state { handed.next() } else { None };
                self.listener = if needs_listener { handed.next() } else { None };
                Ok(())
            }
            Some((InitResponse::Failed(why), _)) => Err(Fault::new("cannot build a jail", why)),
            other => Err(Fault::new("cannot build a jail", format!("heard {other:?}"))),
        }
    }

    /// The directory with what the bot wrote, if it is kept, and whose it is.
    pub(super) fn upper_dir(&self) -> Option<(&OwnedFd, Option<u32>)> {
        Some((self.upper_dir.as_ref()?, self.user))
    }

    /// Whether the first process did not response in time after the bot had used the jail.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Has a task done; none is the response of a jail that was killed, or that a bot has used and that
    /// does not response in time: the latter is killed. If no bot has used it, that is a fault.
    pub(super) fn request(&self, task: &InitRequest) -> Result<Option<InitResponse>, Fault> {
        self.request_with(task, &[])
    }

    fn request_with(
        &self,
        task: &InitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Option<InitResponse>, Fault> {
        if self.is_silent() {
            return Ok(None);
        }
        match ipc::send(&self.socket, task, descriptors) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            Err(error) => return self.no_response("cannot reach a jail", error),
        }
        // A machine that stood still goes on for both sides at once: then the response comes while it
        // is waited for once more.
        let response = ipc::receive(&self.socket).or_else(|error| match error.kind() {
            io::ErrorKind::WouldBlock => ipc::receive(&self.socket),
            _ => Err(error),
        });
        match response {
            Ok(response) => Ok(response.map(|(response, _)| response)),
            Err(error) => self.no_response("cannot hear a jail", error),
        }
    }

    /// What it comes to that the first process gave no response: once a bot has used its jail, silence
    /// is the bot's doing, which could otherwise make its match void whenever it likes.
    fn no_response(&self, what: &str, error: io::Error) -> Result<Option<InitResponse>, Fault> {
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
        let task = InitRequest::Start { argv: argv.to_vec() };
        let descriptors: Vec<_> = theirs.iter().map(OwnedFd::as_fd).collect();
        match self.request_with(&task, &descriptors) {
            Err(Fault::System { cause, .. }) if cause.contains("os error 7") => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(libc::E2BIG)))
            }
            Err(fault) => Err(StartError::Fault(fault)),
            Ok(Some(InitResponse::Started(_))) => {
                self.was_used.store(true, Ordering::Relaxed);
                Process::with_notice(notice, pipes).map_err(system)
            }
            Ok(Some(InitResponse::NotStarted(number))) => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(number)))
            }
            Ok(None) => Err(StartError::Dead),
            Ok(other) => {
                let heard = format!("heard {other:?}");
                Err(StartError::Fault(Fault::new("cannot start a bot", heard)))
            }
        }
    }

    /// Attacks the factory from within; the results come from the process's output.
    pub(super) fn run_self_test(&self, plan: self_test::AttackPlan) -> Result<Process, Fault> {
        let made = pipes(Stdin::Null).fault("cannot make a pipe")?;
        let (pipes, notice, theirs) = made;
        let descriptors: Vec<_> = theirs.iter().map(OwnedFd::as_fd).collect();
        match self.request_with(&InitRequest::SelfTest(Box::new(plan)), &descriptors)? {
            Some(InitResponse::Started(_)) => {
                Process::with_notice(notice, pipes).fault("cannot watch a canary")
            }
            other => Err(Fault::new("cannot start a canary", format!("heard {other:?}"))),
        }
    }

    /// Kills the first process, and with it everything in its namespace.
    pub(super) fn kill(&self) {
        let _dead_already = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for the first process, which is the last to go: whether it is gone.
    pub(super) fn is_gone_after(&self, limit: Duration) -> bool {
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
    pub(super) fn query(&self, task: &InitRequest) -> Result<bool, Fault> {
        match self.request(task)? {
            None => Ok(true),
            Some(InitResponse::Is(so)) => Ok(so),
            other => Err(Fault::new("cannot hear a jail", format!("heard {other:?}"))),
        }
    }
}

impl Drop for NamespaceJail {
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
