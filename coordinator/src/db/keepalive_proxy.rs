//! A local proxy to a database on another host, which notices when the network is cut.
//!
//! # Theory of operation
//!
//! A cut network gives no signal. A sender learns of it after a quarter of an hour. A process that
//! waits for a response never does, because it sends nothing that could fail. The remedy is
//! keep-alive probes by the system (`SO_KEEPALIVE` and `TCP_USER_TIMEOUT` in tcp(7)). But the
//! database driver opens its sockets itself and has no such option, and statement timeouts cannot
//! distinguish a lost database from a busy one.
//!
//! So the driver connects to a Unix socket, in a directory that only this user can enter, and a proxy
//! in this process forwards the bytes over a connection with keep-alive. Passwords and encryption
//! pass through unread. When the database no longer answers, the proxy closes the connection, and
//! the driver's request fails. The sessions on the server have the same limits, so the locks of a
//! lost coordinator are soon free.

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
pub(super) struct KeepAliveProxy {
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

impl KeepAliveProxy {
    /// Creates the socket of a proxy to a database.
    pub(super) fn open(host: &str, port: u16) -> io::Result<Self> {
        let target = Target { host: host.to_owned(), port };
        // Only its owner may enter a temporary directory.
        let directory = tempfile::Builder::new().prefix("arbiter-").tempdir()?;
        // What the driver calls a socket in a directory: the port is a name here.
        let listener = UnixListener::bind(directory.path().join(format!(".s.PGSQL.{port}")))?;
        Ok(Self { target, listener, directory })
    }

    /// The directory of the socket for the driver.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Accepts connections until `end`. Open connections stay until one side closes them.
    pub(super) async fn run(self, end: impl Future<Output = ()>) {
        let serve = async {
            loop {
                match self.listener.accept().await {
                    Ok((driver, _)) => drop(tokio::spawn(connect(driver, self.target.clone()))),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection to the database");
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
    /// Opens a connection that fails when the database no longer answers.
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

/// Forwards bytes between the driver and the database until one of them closes the connection.
async fn connect(mut driver: UnixStream, target: Target) {
    let passed = async {
        let mut database = loop {
            match target.dial().await {
                // The database may be starting. The driver decides how long to wait.
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
