//! The loopback listener for bots that speak HTTP: the only address in their network.
//!
//! A jail with namespaces has its own network namespace, in which there is only a loopback
//! interface that is down. For an HTTP bot, init brings it up and listens there before it drops its
//! privileges. It passes the listening socket to the worker. A socket belongs to the namespace that
//! created it, even if another process owns it. So the worker reaches the bot without a bridge, and
//! the bot reaches nothing except the worker's seat.
//!
//! With the sandbox off the listener is on a port of the machine's loopback. With Landlock there is
//! no listener, because bots have no network.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rustix::net::sockopt;

use super::syscalls;
use crate::fault::{Context as _, Fault};

/// The port that bots connect to, each in its own network.
const PORT: u16 = 8080;

/// The maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The receive buffer of a connection, in bytes: slightly more than one request.
const RECEIVE_BUFFER: usize = 64 * 1024;

/// Settings that bound the TCP buffers in a jail's network, for each connection and direction: the
/// minimum, default and maximum in bytes. No control group counts these buffers. 16 KiB for each
/// descriptor that a bot may have is less than its memory limit.
const BUFFER_SETTINGS: [(&str, &str); 2] =
    [("ipv4/tcp_rmem", "4096 8192 8192"), ("ipv4/tcp_wmem", "4096 16384 16384")];

/// The setting that limits how many connections, besides one, wait for a server that the bot
/// starts. They have no descriptor, so the limit of descriptors does not count them. Older kernels,
/// such as Linux 6.1, have this setting in the machine's own network namespace only.
const BACKLOG_SETTING: (&str, &str) = ("core/somaxconn", "0");

/// The network of a jail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NetworkAccess {
    /// No address to connect to.
    None,
    /// One address, on which the worker listens.
    Loopback,
}

/// The listener on which the worker accepts connections of a bot that speaks HTTP.
#[derive(Debug)]
pub struct LoopbackListener {
    /// The non-blocking listener.
    pub listener: TcpListener,
    /// Its address, as the bot sees it.
    pub address: SocketAddr,
}

impl LoopbackListener {
    /// Wraps the listening socket that init passed.
    pub(super) fn from_socket(listener: TcpListener) -> Result<Self, Fault> {
        let address = listener.set_nonblocking(true).and_then(|()| listener.local_addr());
        Ok(Self { address: address.fault("cannot use a jail's listener")?, listener })
    }

    /// Listens on the machine's own loopback.
    pub(super) fn on_host() -> Result<Self, Fault> {
        Self::from_socket(listen(0).fault("cannot listen for a bot")?)
    }
}

/// Bounds the TCP buffers of a new network namespace. It needs all privileges over the namespace
/// and the machine's own `/proc`. Returns the open backlog setting for [`open`]; if the kernel has
/// none, a bot with a listener must not run servers.
pub(super) fn limit_network_buffers() -> io::Result<Option<File>> {
    let setting = |name: &str| File::options().write(true).open(format!("/proc/sys/net/{name}"));
    for (name, sizes) in BUFFER_SETTINGS {
        let result = setting(name).and_then(|mut file| file.write_all(sizes.as_bytes()));
        result.map_err(|error| cannot_set(name, &error))?;
    }
    match setting(BACKLOG_SETTING.0) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_set(BACKLOG_SETTING.0, &error)),
    }
}

fn cannot_set(name: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot set net/{name}: {error}"))
}

/// Opens the listener from within the network namespace, and then sets `backlog`. In the other
/// order the setting would limit this listener as well.
pub(super) fn open(backlog: Option<File>) -> io::Result<TcpListener> {
    syscalls::bring_up_loopback()?;
    let listener = listen(PORT)?;
    if let Some(mut backlog) = backlog {
        let result = backlog.write_all(BACKLOG_SETTING.1.as_bytes());
        result.map_err(|error| cannot_set(BACKLOG_SETTING.0, &error))?;
    }
    Ok(listener)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // Accepted connections inherit the buffer size.
    sockopt::set_socket_recv_buffer_size(&listener, RECEIVE_BUFFER)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}
