//! The door of a jail whose bot speaks HTTP: the one address in its network.
//!
//! Where there are walls a jail has a network namespace of its own, in which there is nothing but
//! a loopback that is down. For such a bot the first process of the jail brings it up and listens
//! there, before it gives up its rights, and hands the listening socket to the worker: a socket
//! belongs to the namespace that it was made in, whoever holds it. So the worker hears the bot
//! without a bridge, and the bot reaches the worker's seat and nothing else.
//!
//! With the sandbox off the door is a port of the machine's own loopback. A fence gives no network
//! at all, so there is no door in it.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use rustix::net::sockopt;

use super::sys;
use crate::fault::{Context as _, Fault};

/// The port that bots find, each in a network of its own.
const PORT: u16 = 8080;

/// How many connections may wait to be noticed.
const WAITING: i32 = 16;

/// How much of a connection's bytes may wait to be read: a request, and little more.
const UNREAD: usize = 64 * 1024;

/// What bounds the bytes on their way in a jail's network: of each connection in either direction,
/// at the least, at first and at the most. What waits there is in no control group: 16 KiB for each
/// descriptor that a bot may have are less than its memory.
const BOUNDS: [(&str, &str); 2] =
    [("ipv4/tcp_rmem", "4096 8192 8192"), ("ipv4/tcp_wmem", "4096 16384 16384")];

/// How many connections, besides one, may wait for a server that the bot starts: they have no
/// descriptor. Older kernels (Linux 6.1 is one) let only the machine's own network have this bound.
const BACKLOG: (&str, &str) = ("core/somaxconn", "0");

/// Whether a jail has a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// There is nobody to talk to.
    None,
    /// One address, where the worker listens.
    Door,
}

/// Where the worker hears a bot that speaks HTTP.
#[derive(Debug)]
pub struct Door {
    /// Where connections come in; it never blocks.
    pub listener: TcpListener,
    /// Its address, as the bot sees it.
    pub address: SocketAddr,
}

impl Door {
    /// The door of a jail, from the socket that the jail's first process listens on.
    pub(super) fn of(listener: TcpListener) -> Result<Self, Fault> {
        let made = listener.set_nonblocking(true).and_then(|()| listener.local_addr());
        Ok(Self { address: made.fault("cannot use a jail's door")?, listener })
    }

    /// A door without a jail.
    pub(super) fn in_the_open() -> Result<Self, Fault> {
        Self::of(listen(0).fault("cannot listen for a bot")?)
    }
}

/// Bounds what may wait in a new network namespace, with all rights over it, while the machine's own
/// `/proc` is still to be seen; and opens the bound of connections that wait for a server, for
/// [`make`]. Where the kernel has none, a bot that has a door must not have a server.
pub(super) fn bound_network() -> io::Result<Option<File>> {
    let setting = |name: &str| File::options().write(true).open(format!("/proc/sys/net/{name}"));
    for (name, most) in BOUNDS {
        let set = setting(name).and_then(|mut file| file.write_all(most.as_bytes()));
        set.map_err(|error| cannot_set(name, &error))?;
    }
    match setting(BACKLOG.0) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_set(BACKLOG.0, &error)),
    }
}

fn cannot_set(name: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("cannot bound a network's buffers by {name}: {error}"))
}

/// Makes the door from within a network that is bounded, and then closes `backlog`, which would
/// bound the door as well.
pub(super) fn make(backlog: Option<File>) -> io::Result<TcpListener> {
    sys::raise_loopback()?;
    let listener = listen(PORT)?;
    if let Some(mut backlog) = backlog {
        let set = backlog.write_all(BACKLOG.1.as_bytes());
        set.map_err(|error| cannot_set(BACKLOG.0, &error))?;
    }
    Ok(listener)
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    // What connections have they have from here.
    sockopt::set_socket_recv_buffer_size(&listener, UNREAD)?;
    rustix::net::listen(&listener, WAITING)?;
    Ok(listener)
}
