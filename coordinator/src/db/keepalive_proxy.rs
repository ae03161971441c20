//! A local proxy to a database on another host, which detects network failures.
//!
//! # Theory of operation
//!
//! A network failure gives no signal. A sender detects it after about 15 minutes. A process that
//! only waits for a response never detects it, because it sends nothing that could fail. The remedy
//! is keep-alive probes by the system (`SO_KEEPALIVE` and `TCP_USER_TIMEOUT` in tcp(7)). But the
//! database driver opens its sockets itself and has no such option, and statement timeouts cannot
//! distinguish a lost database from a busy one.
//!
//! So the driver connects to a Unix socket, in a directory that only this user can enter, and a
//! proxy in this process forwards the bytes over a connection with keep-alive. The proxy does
//! not read passwords or encrypted data. When the database no longer answers, the proxy closes the
//! connection, and the driver's request fails. The sessions on the server have the same limits, so
//! the locks of a lost coordinator are soon free.

use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::net::sockopt;
use tempfile::TempDir;
use tokio::io::{Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// How long the database may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time without data after which a keep-alive probe is sent, and the time between probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// The connection fails if sent data or probes are not acknowledged for this time.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// The buffer size for each direction, in bytes. Plans have millions of rows, so it is large.
const BUFFER_LEN: usize = 64 << 10;
/// The pause before a retry.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts the driver's connections, and forwards them to the database.
#[derive(Debug)]
pub(super) struct KeepAliveProxy {
    target: Target,
    listener: UnixListener,
    directory: TempDir,
}

/// The address of the database.
#[derive(Clone, Debug)]
struct Target {
    host: String,
    port: u16,
}

impl KeepAliveProxy {
    /// Creates the socket of a proxy to a database.
    pub(super) fn open(host: &str, port: u16) -> io::Result<Self> {
        let target = Target { host: host.to_owned(), port };
        // Only its owner can enter a temporary directory.
        let directory = tempfile::Builder::new().prefix("arbiter-").tempdir()?;
        // The name that the driver expects for a socket in a directory. It contains the port.
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
                    Ok((driver, _)) => drop(tokio::spawn(forward(driver, self.target.clone()))),
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection to the database");
                        sleep(RETRY_DELAY).await;
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
    async fn connect(&self) -> io::Result<TcpStream> {
        let timed_out = |_| io::Error::new(io::ErrorKind::TimedOut, "the database did not respond");
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = timeout(CONNECT_TIMEOUT, connecting).await.map_err(timed_out)??;
        stream.set_nodelay(true)?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_keepidle(&stream, PROBE_INTERVAL)?;
        sockopt::set_tcp_keepintvl(&stream, PROBE_INTERVAL)?;
        let timeout_ms =
            u32::try_from(RESPONSE_TIMEOUT.as_millis()).expect("the timeout is some seconds");
        sockopt::set_tcp_user_timeout(&stream, timeout_ms)?;
        Ok(stream)
    }
}

/// Forwards bytes between the driver and the database until one of them closes the connection.
async fn forward(mut driver: UnixStream, target: Target) {
    let forwarding = async {
        let mut database = loop {
            match target.connect().await {
                // The database may be starting. The driver decides how long to wait.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    if driver.ready(Interest::READABLE).await?.is_read_closed() {
                        return Err(error);
                    }
                    sleep(RETRY_DELAY).await;
                }
                result => break result?,
            }
        };
        copy_bidirectional_with_sizes(&mut driver, &mut database, BUFFER_LEN, BUFFER_LEN).await
    };
    if let Err(error) = forwarding.await {
        let Target { host, port } = target;
        tracing::warn!(%error, host, port, "lost a connection to the database");
    }
}
