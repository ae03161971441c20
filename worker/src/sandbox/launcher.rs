//! The launcher: a process of ours with a single thread, from which every jail is forked.
//!
//! A process with threads may only fork to run another program, and a parent's death signal
//! follows the thread that forked, not the process. The launcher is small, so that forking it is
//! cheap, it holds no descriptor of the worker that could leak, and it lives in the root that
//! jails begin with, where nothing of the machine is to be seen but what bots see.
//!
//! Making namespaces takes longer than all the rest of a jail, so the launcher keeps some ready:
//! first processes that have their namespaces and their `/proc`, and wait for what is to be built in
//! them. It replaces each as soon as it was handed over.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags};
use rustix::process::DumpableBehavior;
use rustix::time::ClockId;

use super::ipc::{self, InitRequest, LauncherRequest, LauncherResponse};
use super::syscalls::{self, Fork};
use super::{init, root_fs};

/// The name by which this program is called as the launcher.
pub(super) const NAME: &str = "arbiter-launcher";

/// How many jails are kept ready: the seats of a match.
const KEPT_READY: usize = 4;

/// Whether this process was started as the launcher.
pub(super) fn is_requested() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the launcher, which hears the worker through its standard input.
pub(super) fn run() -> ! {
    let served = serve(&io::stdin());
    // The worker, if it lives, sees the end of the socket; the reason was sent before.
    syscalls::exit(i32::from(served.is_err()))
}

fn serve(worker: &io::Stdin) -> io::Result<()> {
    let worker = worker.as_fd();
    // Jails are reaped by the kernel.
    syscalls::reset_signals(libc::SIG_IGN);
    let left = syscalls::unshare_user_and_mount();
    let report = left
        .as_ref()
        .map_or_else(failed("cannot leave the namespaces"), |()| LauncherResponse::Unshared);
    ipc::send(worker, &report, &[])?;
    left?;
    let Some((LauncherRequest::Build { store, users }, _)) = ipc::receive(worker)? else {
        return Ok(());
    };
    let built = build(&store).and_then(|()| Ready::fill(users));
    let report =
        built.as_ref().map_or_else(failed("cannot build a root"), |_| LauncherResponse::Ready);
    ipc::send(worker, &report, &[])?;
    let mut ready = built?;
    let mut frozen = Frozen::default();
    let heard = loop {
        frozen.forget_until(worker)?;
        match ipc::receive(worker) {
            Ok(Some((LauncherRequest::Open, beside))) => {
                hand_over(worker, &mut ready, &mut frozen, beside)?
            }
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    frozen.thaw();
    heard
}

/// Hands over a jail, and makes up for it.
fn hand_over(
    worker: BorrowedFd<'_>,
    ready: &mut Ready,
    frozen: &mut Frozen,
    beside: Vec<OwnedFd>,
) -> io::Result<()> {
    match ready.take() {
        Ok(Jail { pid, user, pidfd, socket }) => {
            let report = LauncherResponse::Opened { pid, user };
            ipc::send(worker, &report, &[pidfd.as_fd(), socket.as_fd()])?;
            if let Some(state) = beside.into_iter().next() {
                frozen.0.push((pidfd, state.into()));
            }
        }
        Err(error) => ipc::send(worker, &failed("cannot fork a jail")(&error), &[])?,
    }
    ready.replace();
    Ok(())
}

/// Jails that the old freezer may hold, which keeps even the killed from their death: a worker that
/// is gone cannot let them go.
#[derive(Default)]
struct Frozen(Vec<(OwnedFd, File)>);

impl Frozen {
    /// Waits for the worker, and meanwhile forgets jails that come to their end.
    fn forget_until(&mut self, worker: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let jails = self.0.iter().map(|(pidfd, _)| PollFd::new(pidfd, PollFlags::IN));
            let worker = PollFd::from_borrowed_fd(worker, PollFlags::IN);
            let mut waited: Vec<_> = jails.chain([worker]).collect();
            match rustix::event::poll(&mut waited, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let mut ready: Vec<_> = waited.iter().map(|fd| !fd.revents().is_empty()).collect();
            let heard = ready.pop();
            let mut gone = ready.into_iter();
            self.0.retain(|_| gone.next() == Some(false));
            if heard == Some(true) {
                return Ok(());
            }
        }
    }

    /// Lets all go on, to their end.
    fn thaw(&mut self) {
        for (_, state) in &mut self.0 {
            // A group that is gone holds nobody.
            drop(state.write_all(ipc::THAWED));
        }
    }
}

fn failed(what: &str) -> impl Fn(&io::Error) -> LauncherResponse {
    move |error| LauncherResponse::Failed(format!("{what}: {error}"))
}

/// Becomes the user who owns the root, and builds it.
fn build(store: &Path) -> io::Result<()> {
    let store = root_fs::open_store(store)?;
    syscalls::set_user(0)?;
    // Whoever changes users is hidden from them; but the launcher maps the users of its jails,
    // through files of theirs that are then its own.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // Where the kernel cannot do this, bots see how long the machine has been up: no harm.
    drop(begin_time());
    root_fs::build(&store)
}

/// Lets time begin now for every jail: the clocks that count from the machine's start.
///
/// One namespace for all jails costs none of them anything. One for each would take 15 µs of every
/// start and give no more: its clocks are set once, and nobody in a jail may set any.
fn begin_time() -> io::Result<()> {
    syscalls::unshare_time()?;
    let offset = |clock| -rustix::time::clock_gettime(clock).tv_sec;
    let (monotonic, boot) = (offset(ClockId::Monotonic), offset(ClockId::Boottime));
    let offsets = format!("monotonic {monotonic} 0\nboottime {boot} 0\n");
    std::fs::write("/proc/self/timens_offsets", offsets)
}

/// A jail that waits for what is to be built in it.
struct Jail {
    pid: i32,
    user: u32,
    pidfd: OwnedFd,
    /// The end of the socket that is the worker's.
    socket: OwnedFd,
}

/// Jails that are ready.
struct Ready {
    jails: VecDeque<Jail>,
    /// How many users there are for bots; none if they are the worker's own.
    users: u32,
    /// How many jails were made.
    made: u32,
}

impl Ready {
    fn fill(users: u32) -> io::Result<Self> {
        let mut ready = Self { jails: VecDeque::new(), users, made: 0 };
        for _ in 0..KEPT_READY {
            let jail = ready.make()?;
            ready.jails.push_back(jail);
        }
        Ok(ready)
    }

    fn take(&mut self) -> io::Result<Jail> {
        self.jails.pop_front().map_or_else(|| self.make(), Ok)
    }

    /// Makes up for one that was taken. What fails now is told when it is missed.
    fn replace(&mut self) {
        let jail = self.make();
        self.jails.extend(jail);
    }

    fn make(&mut self) -> io::Result<Jail> {
        let user = if self.users == 0 { 0 } else { 1 + self.made % self.users };
        self.made = self.made.wrapping_add(1);
        fork(user)
    }
}

/// Forks a jail whose bot is `user`.
fn fork(user: u32) -> io::Result<Jail> {
    let (socket, theirs) = ipc::pair()?;
    match syscalls::fork_into_namespaces()? {
        Fork::Child => {
            if init::keep_only(&theirs).is_ok() {
                init::run(theirs);
            }
            syscalls::exit(1)
        }
        Fork::Parent(pid, pidfd) => {
            let map = match user {
                0 => "1000 0 1\n".to_owned(),
                user => format!("0 0 1\n1000 {user} 1\n"),
            };
            for file in ["uid_map", "gid_map"] {
                std::fs::write(format!("/proc/{pid}/{file}"), &map)?;
            }
            ipc::send(&socket, &InitRequest::Prepare { separate_users: user != 0 }, &[])?;
            Ok(Jail { pid, user, pidfd, socket })
        }
    }
}
