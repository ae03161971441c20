//! The launcher: a process of ours with a single thread, which forks every jail.
//!
//! A process with threads may only fork to execute another program, and the parent-death signal
//! follows the thread that forked, not the process. The launcher is small, so forking it is cheap.
//! It has no descriptors of the worker that could leak. It runs in the root with which jails start.
//! That root contains only the files that bots may read.
//!
//! Most of the time to open a jail is spent on namespaces. So the launcher prepares some jails in
//! advance: init processes with namespaces and `/proc`, which wait for a build request. When it
//! hands over a jail, it prepares another.

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

/// The `argv[0]` of this program as the launcher.
pub(super) const NAME: &str = "arbiter-launcher";

/// The number of prepared jails: one for each seat of a match.
const PREPARED_JAILS: usize = 4;

/// Whether this process was started as the launcher.
pub(super) fn is_requested() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Runs the launcher, which receives requests of the worker from its standard input.
pub(super) fn run() -> ! {
    let result = serve(&io::stdin());
    // The reason was sent already. The worker reads the end of the socket.
    syscalls::exit(i32::from(result.is_err()))
}

fn serve(worker: &io::Stdin) -> io::Result<()> {
    let worker = worker.as_fd();
    // The kernel reaps jails.
    syscalls::reset_signals(libc::SIG_IGN);
    let unshare_result = syscalls::unshare_user_and_mount();
    let response = unshare_result
        .as_ref()
        .map_or_else(failed("cannot leave the namespaces"), |()| LauncherResponse::Unshared);
    ipc::send(worker, &response, &[])?;
    unshare_result?;
    let Some((LauncherRequest::Build { store, users }, _)) = ipc::receive(worker)? else {
        return Ok(());
    };
    let jails = build(&store).and_then(|()| PreparedJails::fill(users));
    let response =
        jails.as_ref().map_or_else(failed("cannot build a root"), |_| LauncherResponse::Ready);
    ipc::send(worker, &response, &[])?;
    let mut prepared_jails = jails?;
    let mut frozen = FrozenJails::default();
    let result = loop {
        frozen.wait_for(worker)?;
        match ipc::receive(worker) {
            Ok(Some((LauncherRequest::Open { number }, descriptors))) => {
                hand_over(worker, number, &mut prepared_jails, &mut frozen, descriptors)?;
            }
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    frozen.thaw();
    result
}

/// Hands over a jail, and prepares another.
fn hand_over(
    worker: BorrowedFd<'_>,
    number: u64,
    prepared_jails: &mut PreparedJails,
    frozen: &mut FrozenJails,
    descriptors: Vec<OwnedFd>,
) -> io::Result<()> {
    match prepared_jails.take() {
        Ok(Jail { pid, user, pidfd, socket }) => {
            let response = LauncherResponse::Opened { number, pid, user };
            ipc::send(worker, &response, &[pidfd.as_fd(), socket.as_fd()])?;
            if let Some(state) = descriptors.into_iter().next() {
                frozen.0.push((pidfd, state.into()));
            }
        }
        Err(error) => {
            let cause = format!("cannot fork a jail: {error}");
            ipc::send(worker, &LauncherResponse::NotOpened { number, cause }, &[])?;
        }
    }
    prepared_jails.replace();
    Ok(())
}

/// Jails with a v1 freezer, in which even killed processes cannot exit. If the worker is gone, the
/// launcher thaws them.
#[derive(Default)]
struct FrozenJails(Vec<(OwnedFd, File)>);

impl FrozenJails {
    /// Waits for the worker, and meanwhile removes jails that have ended.
    fn wait_for(&mut self, worker: BorrowedFd<'_>) -> io::Result<()> {
        loop {
            let jails = self.0.iter().map(|(pidfd, _)| PollFd::new(pidfd, PollFlags::IN));
            let worker = PollFd::from_borrowed_fd(worker, PollFlags::IN);
            let mut fds: Vec<_> = jails.chain([worker]).collect();
            match rustix::event::poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            let mut ready: Vec<_> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let has_request = ready.pop();
            let mut jails_ended = ready.into_iter();
            self.0.retain(|_| jails_ended.next() == Some(false));
            if has_request == Some(true) {
                return Ok(());
            }
        }
    }

    /// Thaws all, so that they can exit.
    fn thaw(&mut self) {
        for (_, state) in &mut self.0 {
            // It fails if the group is gone.
            drop(state.write_all(ipc::THAWED));
        }
    }
}

fn failed(what: &str) -> impl Fn(&io::Error) -> LauncherResponse {
    move |error| LauncherResponse::Failed(format!("{what}: {error}"))
}

/// Becomes the user who owns the root, and builds the root.
fn build(store: &Path) -> io::Result<()> {
    let store = root_fs::open_store(store)?;
    syscalls::set_user(0)?;
    // A process that changes its user is no longer dumpable, and its files in `/proc` belong to
    // root. But the launcher must write the user maps of its jails there.
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?;
    // If the kernel cannot do this, bots see the machine's uptime, which is harmless.
    drop(start_new_time());
    root_fs::build(&store)
}

/// Starts the clocks that count from boot at zero for all jails.
///
/// All jails share one time namespace. A separate one would cost 15 µs for each start without a
/// benefit: the clocks are set once, and no process in a jail may set them.
fn start_new_time() -> io::Result<()> {
    syscalls::unshare_time()?;
    let offset = |clock| -rustix::time::clock_gettime(clock).tv_sec;
    let monotonic = offset(ClockId::Monotonic);
    let boot = offset(ClockId::Boottime);
    let offsets = format!("monotonic {monotonic} 0\nboottime {boot} 0\n");
    std::fs::write("/proc/self/timens_offsets", offsets)
}

/// A jail that waits to be built.
struct Jail {
    pid: i32,
    user: u32,
    pidfd: OwnedFd,
    /// The worker's end of the socket.
    socket: OwnedFd,
}

/// Jails that are prepared.
struct PreparedJails {
    jails: VecDeque<Jail>,
    /// The number of users for bots; 0 if bots run as the worker's own user.
    users: u32,
    /// The number of jails created so far.
    created: u32,
}

impl PreparedJails {
    fn fill(users: u32) -> io::Result<Self> {
        let mut prepared_jails = Self { jails: VecDeque::new(), users, created: 0 };
        for _ in 0..PREPARED_JAILS {
            let jail = prepared_jails.create()?;
            prepared_jails.jails.push_back(jail);
        }
        Ok(prepared_jails)
    }

    fn take(&mut self) -> io::Result<Jail> {
        self.jails.pop_front().map_or_else(|| self.create(), Ok)
    }

    /// Prepares another jail. If that fails, [`Self::take`] tries again and reports the error.
    fn replace(&mut self) {
        let jail = self.create();
        self.jails.extend(jail);
    }

    fn create(&mut self) -> io::Result<Jail> {
        let user = if self.users == 0 { 0 } else { 1 + self.created % self.users };
        self.created = self.created.wrapping_add(1);
        fork(user)
    }
}

/// Forks a jail whose bot has this user.
fn fork(user: u32) -> io::Result<Jail> {
    let (socket, child_socket) = ipc::pair()?;
    match syscalls::fork_into_namespaces()? {
        Fork::Child => {
            if init::close_all_but(&child_socket).is_ok() {
                init::run(child_socket);
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
