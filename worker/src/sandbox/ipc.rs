//! Messages between the worker, its launcher and the init of each jail.
//!
//! Every message is one JSON text in one packet of a `SOCK_SEQPACKET` socket, optionally with
//! descriptors. Such a socket keeps message boundaries, and each side sees when the other closes
//! it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::jail_config::Limits;
use super::seccomp::MissingFeatures;

/// The maximum length of a message, in bytes: the longest command line of a bot fits.
const MAX_LENGTH: usize = 160 * 1024;

/// The maximum number of descriptors of a message: three standard streams and the exit pipe.
const MAX_DESCRIPTORS: usize = 4;

/// The text that thaws a group of the v1 freezer.
pub(super) const THAWED: &[u8] = b"THAWED";

/// A request of the worker to its launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LauncherRequest {
    /// The users are mapped: build the root in which jails start.
    Build {
        /// The directory of the program store.
        store: PathBuf,
        /// The number of users for bots; 0 if bots run as the worker's own user.
        users: u32,
    },
    /// Hand over a jail. It may come with the control file of the jail's v1 freezer. When the
    /// worker is gone, the launcher must write [`THAWED`] there, or killed processes cannot exit.
    Open {
        /// The number of the request, which the response repeats.
        number: u64,
    },
}

/// A response of the launcher.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LauncherResponse {
    /// The launcher has left the worker's namespaces and waits until its users are mapped.
    Unshared,
    /// The launcher is ready to open jails.
    Ready,
    /// The launcher opened a jail. The message has the pidfd and the socket of the jail's init.
    Opened {
        /// The number of the request.
        number: u64,
        /// The pid of its init.
        pid: i32,
        /// The user of the bot, by the launcher's numbers.
        user: u32,
    },
    /// The launcher could not open a jail.
    NotOpened {
        /// The number of the request.
        number: u64,
        /// Why.
        cause: String,
    },
    /// An operation failed. The text contains the operation and the cause.
    Failed(String),
}

/// A request of the worker to a jail's init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitRequest {
    /// Do the steps that are the same for every jail. The launcher sends this first, once, and gets
    /// no response.
    Prepare {
        /// Whether the bot and init have different users.
        separate_users: bool,
    },
    /// Build the jail. This comes second, once.
    Build(Box<JailSetup>),
    /// Start a program with the pipes of this message.
    Start {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// Run the self-test as a bot.
    SelfTest(Box<super::self_test::AttackPlan>),
    /// Return the processor time that the jail used. Without a monitor it misses some processes.
    CpuTime,
    /// Return the peak of memory, and the number of kills for memory.
    MemoryUse,
    /// Kill all processes except init, and return whether they are gone.
    KillAll,
    /// Stop all processes except init, by signals.
    Stop,
    /// Return whether all processes are stopped. If not, stop them again: a process that exits can
    /// continue others.
    CheckStopped,
    /// Continue all processes.
    Continue,
}

/// How a jail is built.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JailSetup {
    /// The name of the bot's program in the store; none for an empty directory.
    pub(super) program: Option<String>,
    /// The limits of the bot.
    pub(super) limits: Limits,
    /// The processors it may run on; empty for any.
    pub(super) cores: Vec<usize>,
    /// Whether the bot and init have different users.
    pub(super) separate_users: bool,
    /// The features that the machine lacks. The jail compensates for them.
    pub(super) missing: MissingFeatures,
    /// Whether the response must include the directory with the bot's changes.
    pub(super) saves_state: bool,
    /// Whether the response must include a listening socket, after that directory.
    pub(super) needs_listener: bool,
}

/// A response of a jail's init.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitResponse {
    /// The request is done.
    Done,
    /// The answer to a yes/no request.
    Is(bool),
    /// The processor time used, in microseconds.
    CpuTime(i64),
    /// The memory used.
    MemoryUse {
        /// How often the bot was killed for exceeding its limit.
        kills: u64,
        /// The observed peak, in bytes.
        peak: u64,
    },
    /// The program runs, with this pid in the jail.
    Started(i32),
    /// The program did not start: the `errno`.
    NotStarted(i32),
    /// An operation of init failed. The text contains the operation and the cause.
    Failed(String),
}

/// Creates a pair of connected sockets.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_send_buffer_size(&pair.0, 2 * MAX_LENGTH)?;
    Ok(pair)
}

/// Sends a message. It fails if the other side is gone (`EPIPE`) or the message is too long
/// (`E2BIG`).
pub(super) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_LENGTH {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "a message has at most {MAX_DESCRIPTORS} descriptors");
    }
    // Without the flag, SIGPIPE would kill this process if the other side is gone.
    let flags = SendFlags::NOSIGNAL;
    retry(|| rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags)).map(drop)
}

/// Waits for a message; none if the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let Some(length) = next_length(&socket)? else { return Ok(None) };
    let mut bytes = vec![0; length];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    retry(|| {
        let buffers = &mut [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(&socket, buffers, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Some((serde_json::from_slice(&bytes)?, descriptors)))
}

/// Waits for a message and returns its length, but does not receive it; none if the other side is
/// gone. Most messages are short. A buffer for the longest message would have to be zeroed for
/// each.
fn next_length(socket: impl AsFd) -> io::Result<Option<usize>> {
    let flags = RecvFlags::PEEK | RecvFlags::TRUNC;
    let result = retry(|| rustix::net::recv(&socket, &mut [0_u8; 0], flags));
    match result {
        Ok((_, 0)) => Ok(None),
        Ok((_, length)) => Ok(Some(length.min(MAX_LENGTH))),
        Err(error) if error.raw_os_error() == Some(libc::ECONNRESET) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Repeats a system call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
