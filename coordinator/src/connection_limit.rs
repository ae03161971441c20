//! Limits the connections to a port, and how long a client may stall.
//!
//! Every connection costs a file descriptor and some memory. At the limit, a new connection
//! replaces the one that has been idle longest. A connection with requests is replaced only if none
//! is idle, and never if it has shown a valid token. So open connections lock out no other client,
//! and no worker's stream is closed.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep};

use crate::boxed_future::BoxedFuture;

/// Maximum number of connections to a port, if the limit of open files allows it.
const MAX_CONNECTIONS: u64 = 4096;
/// How long a client may read nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The delay before the next accept when no file descriptor is left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The state of a connection.
#[derive(Debug)]
struct ConnectionState {
    /// The number of open requests.
    requests: usize,
    /// Whether it ever had a request.
    used: bool,
    /// Whether a request had a valid token.
    trusted: bool,
    /// Since when it has been idle or busy.
    since: Instant,
    /// Closes the connection.
    close: oneshot::Sender<()>,
}

/// All connections of a port.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    max: usize,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    last: u64,
    by_number: HashMap<u64, ConnectionState>,
}

impl ConnectionLimiter {
    /// Allows `1 / part` of the files that this process may open. The others are for the database,
    /// records and the other port.
    pub(crate) fn new(part: u64) -> Arc<Self> {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let max = usize::try_from((files / part).clamp(16, MAX_CONNECTIONS)).unwrap_or(usize::MAX);
        Arc::new(Self { max, connections: Mutex::default() })
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts the next connection. The receiver fires when the connection must close to make room.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
    ) -> (LimitedStream, oneshot::Receiver<()>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if self.is_full() && !self.make_room() {
                        tracing::warn!(max = self.max, "connection refused: all are in use");
                        continue;
                    }
                    // Small messages of a stream are sent at once.
                    drop(stream.set_nodelay(true));
                    let (connection, closed) = self.register();
                    let end = Box::pin(std::future::pending());
                    return (LimitedStream { stream, peer, connection, timer: None, end }, closed);
                }
                Err(error) if is_client_error(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; retrying");
                    self.make_room();
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.connections().by_number.len() >= self.max
    }

    fn register(self: &Arc<Self>) -> (Arc<Connection>, oneshot::Receiver<()>) {
        let (close, closed) = oneshot::channel();
        let since = Instant::now();
        let mut connections = self.connections();
        connections.last += 1;
        let number = connections.last;
        let state = ConnectionState { requests: 0, used: false, trusted: false, since, close };
        connections.by_number.insert(number, state);
        (Arc::new(Connection { number, limiter: Arc::clone(self) }), closed)
    }

    /// Closes the least useful connection. Returns whether there was one.
    fn make_room(&self) -> bool {
        let mut connections = self.connections();
        let candidates =
            connections.by_number.iter().filter(|(_, state)| state.requests == 0 || !state.trusted);
        let least =
            candidates.min_by_key(|(_, state)| (state.requests > 0, state.trusted, state.since));
        let Some(number) = least.map(|(number, _)| *number) else { return false };
        if let Some(state) = connections.by_number.remove(&number) {
            // The connection may already have ended.
            state.close.send(()).ok();
        }
        true
    }
}

/// Whether a connection broke before it was accepted.
fn is_client_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

/// A connection. It is unregistered when this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    limiter: Arc<ConnectionLimiter>,
}

impl Connection {
    fn change<T>(&self, change: impl FnOnce(&mut ConnectionState) -> T) -> Option<T> {
        self.limiter.connections().by_number.get_mut(&self.number).map(change)
    }

    /// Starts a request. It ends when the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.change(|state| {
            if state.requests == 0 {
                state.since = Instant::now();
            }
            state.requests += 1;
            state.used = true;
        });
        ActiveRequest(Arc::clone(self))
    }

    /// Records that a request had a valid token.
    pub(crate) fn trust(&self) {
        self.change(|state| state.trusted = true);
    }

    /// Closes the connection, even during a request.
    pub(crate) fn close(&self) {
        if let Some(state) = self.limiter.connections().by_number.remove(&self.number) {
            // The connection may already have ended.
            state.close.send(()).ok();
        }
    }

    /// How long it has been idle, and whether it ever had a request; `None` while it has one.
    pub(crate) fn idle(&self) -> Option<(Duration, bool)> {
        let idle = |state: &mut ConnectionState| {
            (state.requests == 0).then(|| (state.since.elapsed(), state.used))
        };
        // A connection that made room for another closes anyway.
        self.change(idle).unwrap_or_default()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.limiter.connections().by_number.remove(&self.number);
    }
}

/// An open request.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.requests -= 1;
            if state.requests == 0 {
                state.since = Instant::now();
            }
        });
    }
}

/// The stream of a connection, with a write timeout.
pub(crate) struct LimitedStream {
    stream: TcpStream,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// Its registration.
    pub(crate) connection: Arc<Connection>,
    /// Runs while the client reads nothing.
    timer: Option<Pin<Box<Sleep>>>,
    /// Completes with the reason why reading ends.
    end: BoxedFuture<io::Error>,
}

impl LimitedStream {
    /// Ends reading with an error once a future completes.
    pub(crate) fn until(self, end: impl Future<Output = io::Error> + Send + 'static) -> Self {
        Self { end: Box::pin(end), ..self }
    }

    /// Applies the write timeout.
    fn wait<T>(
        &mut self,
        result: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.timer = None;
            return result;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        let stalled = || io::Error::new(io::ErrorKind::TimedOut, "the client does not read");
        timer.as_mut().poll(context).map(|()| Err(stalled()))
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.end.as_mut().poll(context) {
            // Later reads stay pending: the connection is closing.
            self.end = Box::pin(std::future::pending());
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(result, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wait(result, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_idle_connection_makes_room_first() {
        let limiter = Arc::new(ConnectionLimiter { max: 3, connections: Mutex::default() });
        let (worker, mut worker_closed) = limiter.register();
        let (first, mut first_closed) = limiter.register();
        let (second, mut second_closed) = limiter.register();
        assert!(limiter.is_full());
        worker.trust();
        let stream = worker.begin();
        let busy = first.begin();
        assert_eq!(first.idle(), None);
        assert!(!second.idle().unwrap().1);
        assert!(limiter.make_room() && second_closed.try_recv().is_ok());
        assert!(!limiter.is_full() && first_closed.try_recv().is_err());
        assert!(
            limiter.make_room() && first_closed.try_recv().is_ok(),
            "next, a busy one without a token"
        );
        assert!(
            !limiter.make_room() && worker_closed.try_recv().is_err(),
            "the stream of a worker is not closed"
        );
        drop(busy);
        drop(stream);
        assert!(
            limiter.make_room() && worker_closed.try_recv().is_ok(),
            "an idle worker makes room"
        );
        drop((worker, first, second));
        assert!(!limiter.make_room());
    }
}
