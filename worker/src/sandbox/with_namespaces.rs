//! Jails with namespaces, from the worker's side: the worker gets each jail from its launcher, and
//! sends requests to the jail's init. The worker outlives both.

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
use serde::de::DeserializeOwned;

use super::bot_files::ProgramStore;
use super::cgroup::Cgroup;
use super::ipc::{self, InitRequest, InitResponse, JailSetup, LauncherRequest, LauncherResponse};
use super::process::{Pipes, Process, StartError, Stdin};
use super::{init, launcher, self_test};
use crate::fault::{Context as _, Fault};

/// How long one side waits for the other at a time. A response may take two waits: see
/// [`receive_response`].
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first of the users for bots, if the worker may choose them. No system assigns these numbers.
/// This first user builds jails; the bots get the others.
pub(super) const FIRST_UID: u32 = 0x7000_0000;

/// The number of users for bots. Each jail gets the next user; after the last one the first.
pub(super) const UID_COUNT: u32 = 60_000;

/// The launcher, and the data that all jails share.
#[derive(Debug)]
pub(super) struct JailFactory {
    launcher: Mutex<LauncherProcess>,
    /// The programs of bots.
    pub(super) store: ProgramStore,
    /// Whether bots have their own users, not the worker's.
    pub(super) separate_users: bool,
}

#[derive(Debug)]
struct LauncherProcess {
    process: Child,
    socket: OwnedFd,
    /// The number of jails requested so far.
    requested: u64,
}

impl JailFactory {
    /// Starts the launcher. If `separate_users`, bots have their own users.
    pub(super) fn start(separate_users: bool) -> Result<Self, String> {
        let explain = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let store = ProgramStore::new(separate_users.then_some(FIRST_UID))
            .map_err(explain("cannot create the program store"))?;
        let (socket, child_ends) = ipc::pair().map_err(explain("cannot create a socket"))?;
        set_timeouts(&socket).map_err(explain("cannot create a socket"))?;
        let process = spawn(child_ends).map_err(explain("cannot start the launcher"))?;
        let launcher = LauncherProcess { process, socket, requested: 0 };
        launcher.expect(&LauncherResponse::Unshared)?;
        launcher.map_users(separate_users).map_err(explain("cannot map users"))?;
        let users = if separate_users { UID_COUNT } else { 0 };
        let request = LauncherRequest::Build { store: store.path(), users };
        ipc::send(&launcher.socket, &request, &[]).map_err(|error| error.to_string())?;
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
        let mut launcher = self.launcher.lock().unwrap_or_else(PoisonError::into_inner);
        let result = launcher.open(self, freezer.as_ref());
        drop(launcher);
        let mut jail = result?;
        set_timeouts(&jail.socket).fault("cannot set up a socket")?;
        group.add_process(jail.pid)?;
        jail.build(setup)?;
        Ok(jail)
    }
}

/// Receives a response. After a stall of the machine both sides continue at the same time, and the
/// wait of this side is over. So it waits once more: the other side then has time to respond.
fn receive_response<T: DeserializeOwned>(
    socket: &OwnedFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    ipc::receive(socket).or_else(|error| match error.kind() {
        io::ErrorKind::WouldBlock => ipc::receive(socket),
        _ => Err(error),
    })
}

/// The response to a request for a jail. A response to an earlier request came too late for it:
/// that jail ends when its socket is closed here.
fn response_to(
    request: u64,
    socket: &OwnedFd,
) -> io::Result<Option<(LauncherResponse, Vec<OwnedFd>)>> {
    loop {
        match receive_response(socket)? {
            Some((
                LauncherResponse::Opened { number, .. }
                | LauncherResponse::NotOpened { number, .. },
                _,
            )) if number < request => {}
            response => return Ok(response),
        }
    }
}

/// Limits how long the worker waits for the other side.
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
    /// Waits for a response, which must be `expected`.
    fn expect(&self, expected: &LauncherResponse) -> Result<(), String> {
        let what = "cannot receive from the launcher";
        match receive_response(&self.socket).map_err(|error| format!("{what}: {error}"))? {
            Some((response, _)) if response == *expected => Ok(()),
            Some((LauncherResponse::Failed(why), _)) => Err(why),
            Some((other, _)) => Err(format!("unexpected response of the launcher: {other:?}")),
            None => Err(format!("{what}: the launcher has ended")),
        }
    }

    /// Maps the users of the launcher's namespace: many, or only this process's own.
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

    /// Gets a prepared jail from the launcher.
    fn open(
        &mut self,
        factory: &Arc<JailFactory>,
        freezer: Option<&File>,
    ) -> Result<NamespaceJail, Fault> {
        let what = "cannot open a jail";
        let descriptors: Vec<_> = freezer.map(File::as_fd).into_iter().collect();
        self.requested += 1;
        let request = LauncherRequest::Open { number: self.requested };
        ipc::send(&self.socket, &request, &descriptors).fault("cannot send to the launcher")?;
        match response_to(self.requested, &self.socket).fault(what)? {
            Some((LauncherResponse::Opened { pid, user, .. }, descriptors)) => {
                let descriptors = <[OwnedFd; 2]>::try_from(descriptors);
                let [pidfd, socket] = descriptors.map_err(|_| {
                    Fault::new(
                        what,
                        "a descriptor is missing (is the limit of open files reached?)",
                    )
                })?;
                Ok(NamespaceJail {
                    socket,
                    pidfd,
                    pid,
                    upper_dir: None,
                    listener: None,
                    user: factory.separate_users.then_some(FIRST_UID + user),
                    was_used: AtomicBool::new(false),
                    is_unresponsive: AtomicBool::new(false),
                    _factory: Arc::clone(factory),
                })
            }
            Some((LauncherResponse::NotOpened { cause, .. }, _)) => Err(Fault::new(what, cause)),
            other => Err(Fault::new(what, format!("unexpected response: {other:?}"))),
        }
    }
}

impl Drop for LauncherProcess {
    fn drop(&mut self) {
        // All jails have ended: each has a reference to the factory.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A jail with namespaces, from the worker's side.
#[derive(Debug)]
pub(super) struct NamespaceJail {
    socket: OwnedFd,
    pidfd: OwnedFd,
    /// The pid of init, while it exists.
    pub(super) pid: libc::pid_t,
    /// The directory with the bot's changes, if the worker saves them.
    upper_dir: Option<OwnedFd>,
    /// The listener for the bot, if it has one, until it is taken.
    pub(super) listener: Option<OwnedFd>,
    /// The user of the bot outside of the jail, if not the worker's own.
    user: Option<u32>,
    /// Whether a program of the bot was started here.
    was_used: AtomicBool,
    /// Whether init did not respond in time after that. Then it gets no more requests: the worker
    /// would confuse a late response with the response to the next request.
    is_unresponsive: AtomicBool,
    /// The launcher outlives its jails.
    _factory: Arc<JailFactory>,
}

impl NamespaceJail {
    fn build(&mut self, setup: JailSetup) -> Result<(), Fault> {
        let saves_state = setup.saves_state;
        let needs_listener = setup.needs_listener;
        let request = InitRequest::Build(Box::new(setup));
        ipc::send(&self.socket, &request, &[]).fault("cannot build a jail")?;
        match receive_response(&self.socket).fault("cannot build a jail")? {
            Some((InitResponse::Done, fds)) => {
                let mut fds = fds.into_iter();
                self.upper_dir = if saves_state { fds.next() } else { None };
                self.listener = if needs_listener { fds.next() } else { None };
                Ok(())
            }
            Some((InitResponse::Failed(why), _)) => Err(Fault::new("cannot build a jail", why)),
            other => {
                Err(Fault::new("cannot build a jail", format!("unexpected response: {other:?}")))
            }
        }
    }

    /// The directory with the bot's changes, if they are saved, and its user.
    pub(super) fn upper_dir(&self) -> Option<(&OwnedFd, Option<u32>)> {
        Some((self.upper_dir.as_ref()?, self.user))
    }

    /// Whether init did not respond in time after the bot had used the jail.
    pub(super) fn is_unresponsive(&self) -> bool {
        self.is_unresponsive.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for the response. Returns none if the jail was killed. If a bot
    /// has used the jail and init does not respond in time, it kills the jail and returns none. If
    /// no bot has used the jail, a late response is a fault.
    pub(super) fn request(&self, request: &InitRequest) -> Result<Option<InitResponse>, Fault> {
        self.request_with(request, &[])
    }

    fn request_with(
        &self,
        request: &InitRequest,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<Option<InitResponse>, Fault> {
        if self.is_unresponsive() {
            return Ok(None);
        }
        match ipc::send(&self.socket, request, descriptors) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(None),
            Err(error) => return self.no_response("cannot send to a jail", error),
        }
        match receive_response(&self.socket) {
            Ok(response) => Ok(response.map(|(response, _)| response)),
            Err(error) => self.no_response("cannot receive from a jail", error),
        }
    }

    /// Handles a missing response. Once a bot has used its jail, the bot is responsible. Otherwise
    /// a bot could cause a fault at any time.
    fn no_response(&self, what: &str, error: io::Error) -> Result<Option<InitResponse>, Fault> {
        let is_late = error.kind() == io::ErrorKind::WouldBlock;
        if !is_late || !self.was_used.load(Ordering::Relaxed) {
            return Err(Fault::new(what, error));
        }
        self.is_unresponsive.store(true, Ordering::Relaxed);
        self.kill();
        Ok(None)
    }

    /// Starts a program.
    pub(super) fn start(&self, argv: &[String], stdin: Stdin) -> Result<Process, StartError> {
        let pipe_error =
            |error| StartError::Fault(Fault::new("cannot create a pipe for a bot", error));
        let (pipes, notice, child_ends) = pipes(stdin).map_err(pipe_error)?;
        let request = InitRequest::Start { argv: argv.to_vec() };
        let descriptors: Vec<_> = child_ends.iter().map(OwnedFd::as_fd).collect();
        match self.request_with(&request, &descriptors) {
            Err(Fault::System { cause, .. }) if cause.contains("os error 7") => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(libc::E2BIG)))
            }
            Err(fault) => Err(StartError::Fault(fault)),
            Ok(Some(InitResponse::Started(_))) => {
                self.was_used.store(true, Ordering::Relaxed);
                Process::with_notice(notice, pipes).map_err(pipe_error)
            }
            Ok(Some(InitResponse::NotStarted(number))) => {
                Err(StartError::refused(&argv[0], io::Error::from_raw_os_error(number)))
            }
            Ok(None) => Err(StartError::JailGone),
            Ok(other) => {
                let response = format!("unexpected response: {other:?}");
                Err(StartError::Fault(Fault::new("cannot start a bot", response)))
            }
        }
    }

    /// Starts the self-test in the jail. Its results are the process's output.
    pub(super) fn run_self_test(&self, plan: self_test::AttackPlan) -> Result<Process, Fault> {
        let (pipes, notice, child_ends) = pipes(Stdin::Null).fault("cannot create a pipe")?;
        let descriptors: Vec<_> = child_ends.iter().map(OwnedFd::as_fd).collect();
        match self.request_with(&InitRequest::SelfTest(Box::new(plan)), &descriptors)? {
            Some(InitResponse::Started(_)) => {
                Process::with_notice(notice, pipes).fault("cannot observe the self-test")
            }
            other => Err(Fault::new(
                "cannot start the self-test",
                format!("unexpected response: {other:?}"),
            )),
        }
    }

    /// Kills init, and with it all processes in its PID namespace.
    pub(super) fn kill(&self) {
        let _dead_already = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Waits for init, which ends last. Returns whether it is gone.
    pub(super) fn is_gone_after(&self, limit: Duration) -> bool {
        let start_time = Instant::now();
        loop {
            let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
            let remaining = limit.saturating_sub(start_time.elapsed());
            let timeout = Timespec::try_from(remaining).expect("a short time");
            match rustix::event::poll(&mut fds, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) => {}
                other => return other.is_ok_and(|ready| ready > 0),
            }
        }
    }

    /// Sends a yes/no request. A jail without a response counts as yes.
    pub(super) fn query(&self, request: &InitRequest) -> Result<bool, Fault> {
        match self.request(request)? {
            None => Ok(true),
            Some(InitResponse::Is(value)) => Ok(value),
            other => Err(Fault::new(
                "cannot receive from a jail",
                format!("unexpected response: {other:?}"),
            )),
        }
    }
}

impl Drop for NamespaceJail {
    fn drop(&mut self) {
        // Do not leave a jail that was not fully built.
        self.kill();
    }
}

/// Creates the pipes for a program. Returns the worker's ends of the standard streams, the read end
/// of the exit pipe, and the program's ends in the order of a start request.
fn pipes(stdin: Stdin) -> io::Result<(Pipes, OwnedFd, Vec<OwnedFd>)> {
    let pipe = || rustix::pipe::pipe_with(PipeFlags::CLOEXEC);
    let mut child_ends = Vec::with_capacity(4);
    let stdin = if stdin == Stdin::Pipe {
        let (read, write) = pipe()?;
        child_ends.push(read);
        Some(write)
    } else {
        None
    };
    let (stdout, write) = pipe()?;
    child_ends.push(write);
    let (stderr, write) = pipe()?;
    child_ends.push(write);
    let (notice, write) = pipe()?;
    child_ends.push(write);
    Ok((Pipes { stdin, stdout, stderr }, notice, child_ends))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_that_is_late_is_not_taken_for_the_next_one() {
        let (socket, other_side) = ipc::pair().unwrap();
        let opened = |number| LauncherResponse::Opened { number, pid: 1, user: 1 };
        let late = LauncherResponse::NotOpened { number: 2, cause: "late".to_owned() };
        for response in [opened(1), late, opened(3)] {
            ipc::send(&other_side, &response, &[]).unwrap();
        }
        let (response, _) = response_to(3, &socket).unwrap().expect("there are three");
        assert_eq!(response, opened(3));
    }
}
