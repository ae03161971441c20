//! The way to a database on another host, which notices when the network is cut.
//!
//! # Theory of operation
//!
//! A network that is cut tells nobody. Whoever was sending to the database learns of it after a
//! quarter of an hour, and whoever was waiting for its answer never does, because there is nothing
//! left to send that could fail. The remedy is that the system asks the other host every now and
//! then whether it is there (`SO_KEEPALIVE` and `TCP_USER_TIMEOUT` in tcp(7)). But the database
//! driver opens its sockets itself and has no such option, and limits on how long statements take
//! would not tell a database that is gone from one that is busy.
//!
//! So the driver is led through a Unix socket, in a directory that nobody else enters, to a relay
//! in this process, which passes bytes on over a connection that is kept alive. Passwords and
//! encryption go through it unseen. When the database does not answer any more the relay hangs up,
//! and what the driver waited for has failed. The sessions on the database's side are told the same
//! limits, so that what a lost coordinator had locked is soon free.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt;
use tempfile::TempDir;
use tokio::io::{Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// How long the database may take to accept a connection.
const DIAL: Duration = Duration::from_secs(10);
/// After how much silence the other host is asked whether it is there, and how often.
const PULSE: Duration = Duration::from_secs(5);
/// How long it may leave anything unanswered.
const SILENCE: Duration = Duration::from_secs(10);
/// Bytes that are passed on at a time, in each direction: a plan is millions of rows.
const PIECE: usize = 64 << 10;
/// How long to wait before something is tried again.
const REST: Duration = Duration::from_millis(100);

/// Takes the driver's connections to the database.
#[derive(Debug)]
pub(super) struct Relay {
    target: Target,
    listener: UnixListener,
    directory: TempDir,
}

/// Where the database is.
#[derive(Clone, Debug)]
struct Target {
    host: String,
    port: u16,
}

impl Relay {
    /// A relay to a database.
    ///
    /// # Errors
    /// If there is no place for a socket.
    pub(super) fn open(host: &str, port: u16) -> io::Result<Self> {
        let target = Target { host: host.to_owned(), port };
        // Only its owner may enter a temporary directory.
        let directory = tempfile::Builder::new().prefix("arbiter-").tempdir()?;
        // What the driver calls a socket in a directory: the port is a name here.
        let listener = UnixListener::bind(directory.path().join(format!(".s.PGSQL.{port}")))?;
        Ok(Self { target, listener, directory })
    }

    /// The directory that the driver is led to.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Connects whoever comes, until `end`. Those who are connected then stay so until they hang
    /// up.
    pub(super) async fn run(self, end: impl Future<Output = ()>) {
        let serve = async {
            loop {
                match self.listener.accept().await {
                    Ok((driver, _)) => drop(tokio::spawn(connect(driver, self.target.clone()))),
                    Err(error) => {
                        tracing::warn!(%error, "cannot take a connection to the database");
                        sleep(REST).await;
                    }
                }
            }
        };
        tokio::select! {
            () = serve => {}
            () = end => {}
        }
    }
}

impl Target {
    /// A connection that ends when the database is not there any more.
    async fn dial(&self) -> io::Result<TcpStream> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        let dialling = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(DIAL, dialling).await.map_err(late)??;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, PULSE)?;
        sockopt::set_tcp_keepintvl(&stream, PULSE)?;
        let silence = u32::try_from(SILENCE.as_millis()).expect("it is seconds");
        sockopt::set_tcp_user_timeout(&stream, silence)?;
        Ok(stream)
    }
}

/// Passes on what the driver and the database say to each other, until one of them hangs up.
async fn connect(mut driver: UnixStream, target: Target) {
    let passed = async {
        let mut database = loop {
            match target.dial().await {
                // It may be starting: the driver knows how long to wait for that.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if driver.ready(Interest::READABLE).await?.is_read_closed() {
                        return Err(error);
                    }
                    sleep(REST).await;
                }
                dialled => break dialled?,
            }
        };
        copy_bidirectional_with_sizes(&mut driver, &mut database, PIECE, PIECE).await
    };
    if let Err(error) = passed.await {
        let Target { host, port } = target;
        tracing::warn!(%error, host, port, "lost a connection to the database");
    }
}
