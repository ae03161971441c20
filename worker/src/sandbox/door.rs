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

use std::fs;
use std::io;
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
/// at the least, at first and at the most; and how many connections may wait for a server that the
/// bot starts, besides one. What waits there is in no control group: 16 KiB for each descriptor that
/// a bot may have are less than its memory.
const BOUNDS: [(&str, &str); 3] = [
    ("ipv4/tcp_rmem", "4096 8192 8192"),
    ("ipv4/tcp_wmem", "4096 16384 16384"),
    ("core/somaxconn", "0"),
];

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

/// Makes the door from within a new network namespace, with all rights over it, while the machine's
/// own `/proc` is still to be seen.
pub(super) fn make() -> io::Result<TcpListener> {
    sys::raise_loopback()?;
    let listener = listen(PORT)?;
    for (name, bound) in BOUNDS {
        fs::write(format!("/proc/sys/net/{name}"), bound).map_err(|error| {
            io::Error::other(format!("cannot bound a network's buffers by {name}: {error}"))
        })?;
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
