//! A proxy to the database that fails at a chosen message, as if the server restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The duration of the outage.
const OUTAGE_DURATION: Duration = Duration::from_millis(500);
/// The file name that Postgres clients expect for the socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// A proxy to a database on a Unix socket. After a number of client messages it closes all
/// connections and refuses new ones until the outage ends. There is one outage only.
#[derive(Debug)]
pub(crate) struct Outage {
    directory: TempDir,
    message_count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Outage {
    /// Starts a proxy. The outage begins at this client message, counted from 0, which is lost.
    pub(crate) fn at(message: usize, database: &PgConnectOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join(SOCKET)).unwrap();
        let server_socket = database.get_socket().unwrap().join(SOCKET);
        let message_count = Arc::new(AtomicUsize::new(0));
        let (down_sender, down) = watch::channel(false);
        let down_sender = Arc::new(down_sender);
        let counter = Arc::clone(&message_count);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // During the outage each new connection is closed at once.
                if *down.borrow() {
                    continue;
                }
                let server_socket = server_socket.clone();
                let counter = Arc::clone(&counter);
                let down_sender = Arc::clone(&down_sender);
                tokio::spawn(async move {
                    let server = UnixStream::connect(server_socket).await.unwrap();
                    if forward(client, server, message, &counter, &down_sender).await {
                        tokio::time::sleep(OUTAGE_DURATION).await;
                        down_sender.send_replace(false);
                    }
                });
            }
        });
        Self { directory, message_count, task }
    }

    /// The options of a connection through the proxy.
    pub(crate) fn options(&self, database: PgConnectOptions) -> PgConnectOptions {
        database.socket(self.directory.path())
    }

    /// The number of messages that clients have sent.
    pub(crate) fn messages_sent(&self) -> usize {
        self.message_count.load(Ordering::Relaxed)
    }
}

impl Drop for Outage {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Forwards data in both directions until one side closes or the outage begins. Returns whether
/// this connection sent the message at which the outage begins.
async fn forward(
    mut client: UnixStream,
    mut server: UnixStream,
    message: usize,
    message_count: &AtomicUsize,
    down_sender: &watch::Sender<bool>,
) -> bool {
    let mut down = down_sender.subscribe();
    let mut request = vec![0; 8192];
    let mut response = vec![0; 8192];
    loop {
        tokio::select! {
            _ = down.changed() => return false,
            read = client.read(&mut request) => {
                let Ok(length @ 1..) = read else { return false };
                if message_count.fetch_add(1, Ordering::Relaxed) == message {
                    down_sender.send_replace(true);
                    return true;
                }
                if server.write_all(&request[..length]).await.is_err() { return false }
            }
            read = server.read(&mut response) => {
                let Ok(length @ 1..) = read else { return false };
                if client.write_all(&response[..length]).await.is_err() { return false }
            }
        }
    }
}
