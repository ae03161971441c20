//! Messages between the worker, its launcher and the first process of each jail.
//!
//! Every message is one JSON text in one packet of a `SOCK_SEQPACKET` socket, so that messages
//! keep their borders and the end of either side is seen by the other, with descriptors beside.

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

use super::limits::Limits;
use super::seccomp::MissingFeatures;

/// The longest message, in bytes. What sets it is the longest command line of a bot.
const LONGEST: usize = 160 * 1024;

/// The most descriptors beside one message: three pipes and a notice of the end.
const MOST_DESCRIPTORS: usize = 4;

/// What lets a group of the old freezer go on.
pub(super) const THAWED: &[u8] = b"THAWED";

/// What the worker asks of its launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum LauncherRequest {
    /// Its users are mapped; build the room that jails begin in.
    Build {
        /// Where programs are stored.
        store: PathBuf,
        /// How many users there are for bots; none if they are the worker's own.
        users: u32,
    },
    /// Hand over a jail. Beside this may be a file: what is in the jail's control group when the
    /// worker is gone can only die if [`THAWED`] is upper_dir there.
    Open,
}

/// What the launcher says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum LauncherResponse {
    /// It has left the worker's namespaces and waits for its users to be mapped.
    Unshared,
    /// It is ready for orders.
    Ready,
    /// A jail, with a descriptor of its first process and the socket that this one hears.
    Opened {
        /// The number of its first process.
        pid: i32,
        /// The user that the bot is to be, as the launcher counts users.
        user: u32,
    },
    /// Something failed: what, and why.
    Failed(String),
}

/// What the worker asks of a jail's first process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitRequest {
    /// Build what is the same for every jail. The launcher says so, first and once, and hears no
    /// answer.
    Prepare {
        /// Whether the bot will be another user than the jail's first process.
        separate_users: bool,
    },
    /// Build the walls. Comes next, and once.
    Build(Box<JailSetup>),
    /// Start a program with the pipes beside this message.
    Start {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// Prove the walls: attack them from within, as a bot would.
    SelfTest(Box<super::self_test::AttackPlan>),
    /// Say how much processor time was used, as far as you know.
    CpuTime,
    /// Say how much memory was used, and how often it was too much.
    MemoryUse,
    /// Kill everything but yourself, and say whether all of it went.
    KillAll,
    /// Stop everything but yourself, by signals.
    Stop,
    /// Say whether it stands; if it does not, stop it once more: the end of a process that was on
    /// its way out can wake others.
    CheckStopped,
    /// Let it run again.
    Continue,
}

/// How a jail is built.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JailSetup {
    /// Where the bot's program lies, in the store; none for an empty directory.
    pub(super) program: Option<String>,
    /// What it may use.
    pub(super) limits: Limits,
    /// The processors it may run on; any if there are none.
    pub(super) cores: Vec<usize>,
    /// Whether the bot is another user than the jail's first process.
    pub(super) separate_users: bool,
    /// What the machine does not give, and the jail has to make up for.
    pub(super) missing: MissingFeatures,
    /// Whether the worker wants to reach what the bot writes.
    pub(super) saves_state: bool,
    /// Whether the worker wants to be reached by the bot: a listening socket comes with the answer,
    /// behind what the line above asks for.
    pub(super) needs_listener: bool,
}

/// What a jail's first process answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum InitResponse {
    /// It was done.
    Done,
    /// Whether it is so.
    Is(bool),
    /// So many microseconds of processor time were used.
    CpuTime(i64),
    /// So much memory was used.
    MemoryUse {
        /// How often the bot was killed for too much of it.
        kills: u64,
        /// The most that was seen at a time, in bytes.
        peak: u64,
    },
    /// The program runs, with this number in the jail.
    Started(i32),
    /// The program could not be started: the error's number.
    NotStarted(i32),
    /// Something of ours failed: what, and why.
    Failed(String),
}

/// A pair of connected sockets.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_send_buffer_size(&pair.0, 2 * LONGEST)?;
    Ok(pair)
}

/// Sends a message.
///
/// # Errors
/// If the other side is gone, or the message is too long.
pub(super) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > LONGEST {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "space for four");
    }
    // Without the flag a program that ignores no SIGPIPE would die of the other side's death.
    let flags = SendFlags::NOSIGNAL;
    retry(|| rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags)).map(drop)
}

/// Waits for a message; none comes when the other side is gone.
pub(super) fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let Some(length) = next_length(&socket)? else { return Ok(None) };
    let mut bytes = vec![0; length];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    retry(|| {
        let into = &mut [IoSliceMut::new(&mut bytes)];
        rustix::net::recvmsg(&socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)
    })?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Some((serde_json::from_slice(&bytes)?, descriptors)))
}

/// Waits for a message and tells its length without taking it; none when the other side is gone.
/// Messages are short, and space for the longest would have to be zeroed for each.
fn next_length(socket: impl AsFd) -> io::Result<Option<usize>> {
    let flags = RecvFlags::PEEK | RecvFlags::TRUNC;
    let peeked = retry(|| rustix::net::recv(&socket, &mut [0_u8; 0], flags));
    match peeked {
        Ok((_, 0)) => Ok(None),
        Ok((_, length)) => Ok(Some(length.min(LONGEST))),
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
