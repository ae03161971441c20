//! A proxy to the database that breaks at a given moment, like a restart of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long the outage lasts.
const AWAY: Duration = Duration::from_millis(500);
/// The file name of the socket that clients of Postgres expect.
const SOCKET: &str = ".s.PGSQL.5432";

/// A proxy to a database on a Unix socket. After clients have sent a number of messages, it breaks
/// all connections, and refuses new ones until the outage ends. That happens once.
#[derive(Debug)]
pub(crate) struct Outage {
    directory: TempDir,
    sent: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Outage {
    /// It breaks instead of forwarding this message, counted from 0.
    pub(crate) fn at(message: usize, database: &PgConnectOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let to = database.get_socket().unwrap().join(SOCKET);
        let sent = Arc::new(AtomicUsize::new(0));
        let (breaks, broken) = watch::channel(false);
        let counter = Arc::clone(&sent);
        let breaks = Arc::new(breaks);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // While it is broken a connection ends as soon as it is made.
                if *broken.borrow() {
                    continue;
                }
                let to = to.clone();
                let counter = Arc::clone(&counter);
                let breaks = Arc::clone(&breaks);
                tokio::spawn(async move {
                    let server = UnixStream::connect(to).await.unwrap();
                    if pass_on(client, server, message, &counter, &breaks).await {
                        tokio::time::sleep(AWAY).await;
                        breaks.send_replace(false);
                    }
                });
            }
        });
        Self { directory, sent, serving }
    }

    /// The same database through the proxy.
    pub(crate) fn options(&self, database: PgConnectOptions) -> PgConnectOptions {
        database.socket(self.directory.path())
    }

    /// The number of messages that clients have sent.
    pub(crate) fn messages_sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Forwards data both ways until an end closes or the outage begins. Returns whether it began here.
async fn pass_on(
    mut client: UnixStream,
    mut server: UnixStream,
    message: usize,
    sent: &AtomicUsize,
    breaks: &watch::Sender<bool>,
) -> bool {
    let mut broken = breaks.subscribe();
    let mut asked = vec![0; 8192];
    let mut answered = vec![0; 8192];
    loop {
        tokio::select! {
            _ = broken.changed() => return false,
            read = client.read(&mut asked) => {
                let Ok(length @ 1..) = read else { return false };
                if sent.fetch_add(1, Ordering::Relaxed) == message {
                    breaks.send_replace(true);
                    return true;
                }
                if server.write_all(&asked[..length]).await.is_err() { return false }
            }
            read = server.read(&mut answered) => {
                let Ok(length @ 1..) = read else { return false };
                if client.write_all(&answered[..length]).await.is_err() { return false }
            }
        }
    }
}
