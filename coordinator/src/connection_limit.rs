//! Connections to our ports: how many there may be, which makes room for a new one, and how long
//! each may keep us waiting.
//!
//! Every connection costs a file descriptor and some memory. When all are taken and a new one comes,
//! the one that has waited longest without a request is ended; one with requests is ended only if
//! there is none without, and never if it has shown a valid token. So holding connections open keeps
//! no other caller out, and ends no worker's stream.

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

/// Connections of a port at most, if the system lets us have so many files open.
const MOST: u64 = 4096;
/// How long a reader may take nothing of an answer.
const STALL: Duration = Duration::from_secs(30);
/// How long it is waited before a connection is taken when no file descriptor is left.
const NO_ROOM: Duration = Duration::from_millis(100);

/// A connection, as far as it matters to the others.
#[derive(Debug)]
struct Known {
    /// Requests that are being answered.
    requests: usize,
    /// Whether there ever was one.
    used: bool,
    /// Whether one of them came with a valid token.
    trusted: bool,
    /// When `requests` began or ceased to be 0.
    since: Instant,
    /// Ends it.
    close: oneshot::Sender<()>,
}

/// All connections of a port.
#[derive(Debug)]
pub(crate) struct ConnectionLimiter {
    most: usize,
    known: Mutex<Numbered>,
}

#[derive(Debug, Default)]
struct Numbered {
    last: u64,
    connections: HashMap<u64, Known>,
}

impl ConnectionLimiter {
    /// Allows connections to take one file in `part` of those that this process may open: the rest
    /// is for the database, records and the other port.
    pub(crate) fn new(part: u64) -> Arc<Self> {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from((files / part).clamp(16, MOST)).unwrap_or(usize::MAX);
        Arc::new(Self { most, known: Mutex::default() })
    }

    fn known(&self) -> MutexGuard<'_, Numbered> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next connection for which there is room, and what says when it is to be ended, because it
    /// makes room.
    pub(crate) async fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
    ) -> (LimitedStream, oneshot::Receiver<()>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    if self.is_full() && !self.make_room() {
                        tracing::warn!(most = self.most, "a connection is refused: all are in use");
                        continue;
                    }
                    // A few bytes of a stream are not to wait for more.
                    drop(stream.set_nodelay(true));
                    let (connection, closed) = self.enter();
                    let end = Box::pin(std::future::pending());
                    return (LimitedStream { stream, peer, connection, timer: None, end }, closed);
                }
                Err(error) if is_theirs(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken; trying again");
                    self.make_room();
                    sleep(NO_ROOM).await;
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.known().connections.len() >= self.most
    }

    fn enter(self: &Arc<Self>) -> (Arc<Connection>, oneshot::Receiver<()>) {
        let (close, closed) = oneshot::channel();
        let since = Instant::now();
        let mut known = self.known();
        known.last += 1;
        let number = known.last;
        let one = Known { requests: 0, used: false, trusted: false, since, close };
        known.connections.insert(number, one);
        (Arc::new(Connection { number, limiter: Arc::clone(self) }), closed)
    }

    /// Ends the connection that can be missed most easily; whether there was one.
    fn make_room(&self) -> bool {
        let mut known = self.known();
        let ends = known.connections.iter().filter(|(_, one)| one.requests == 0 || !one.trusted);
        let least = ends.min_by_key(|(_, one)| (one.requests > 0, one.trusted, one.since));
        let Some(number) = least.map(|(number, _)| *number) else { return false };
        if let Some(ended) = known.connections.remove(&number) {
            // It may have ended by itself.
            ended.close.send(()).ok();
        }
        true
    }
}

/// Whether a connection broke before it was taken.
fn is_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

/// One connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    limiter: Arc<ConnectionLimiter>,
}

impl Connection {
    fn change<T>(&self, change: impl FnOnce(&mut Known) -> T) -> Option<T> {
        self.limiter.known().connections.get_mut(&self.number).map(change)
    }

    /// A request begins; it ends when what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.change(|known| {
            if known.requests == 0 {
                known.since = Instant::now();
            }
            known.requests += 1;
            known.used = true;
        });
        ActiveRequest(Arc::clone(self))
    }

    /// A request came with a valid token.
    pub(crate) fn trust(&self) {
        self.change(|known| known.trusted = true);
    }

    /// Closes it, also in the middle of a request.
    pub(crate) fn close(&self) {
        if let Some(ended) = self.limiter.known().connections.remove(&self.number) {
            // It may have ended by itself.
            ended.close.send(()).ok();
        }
    }

    /// How long it has had no request, and whether it ever had one; nothing while it has.
    pub(crate) fn idle(&self) -> Option<(Duration, bool)> {
        let idle =
            |known: &mut Known| (known.requests == 0).then(|| (known.since.elapsed(), known.used));
        // One that made room for another is ended anyway.
        self.change(idle).unwrap_or_default()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.limiter.known().connections.remove(&self.number);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct ActiveRequest(Arc<Connection>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.change(|known| {
            known.requests -= 1;
            if known.requests == 0 {
                known.since = Instant::now();
            }
        });
    }
}

/// What is read and written over a connection, whose reader has to read.
pub(crate) struct LimitedStream {
    stream: TcpStream,
    /// The other end.
    pub(crate) peer: SocketAddr,
    /// Its place among the others.
    pub(crate) connection: Arc<Connection>,
    /// Runs while the reader takes nothing.
    timer: Option<Pin<Box<Sleep>>>,
    /// Says why nothing more is read.
    end: Pin<Box<dyn Future<Output = io::Error> + Send>>,
}

impl LimitedStream {
    /// The same, of which nothing more is read once there is a reason.
    pub(crate) fn until(self, end: impl Future<Output = io::Error> + Send + 'static) -> Self {
        Self { end: Box::pin(end), ..self }
    }

    /// Looks at the clock while something waits to be read.
    fn wait<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timer = None;
            return written;
        }
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(STALL)));
        let stalled = || io::Error::new(io::ErrorKind::TimedOut, "the reader reads nothing");
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
            // Whoever asks again is told nothing: the connection is over.
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
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.wait(written, context)
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
        let limiter = Arc::new(ConnectionLimiter { most: 3, known: Mutex::default() });
        let (worker, mut worker_closed) = limiter.enter();
        let (first, mut first_closed) = limiter.enter();
        let (second, mut second_closed) = limiter.enter();
        assert!(limiter.is_full());
        worker.trust();
        let stream = worker.begin();
        let busy = first.begin();
        assert_eq!(first.idle(), None);
        assert!(!second.idle().unwrap().1);
        assert!(limiter.make_room() && second_closed.try_recv().is_ok());
        assert!(!limiter.is_full() && first_closed.try_recv().is_err());
        assert!(limiter.make_room() && first_closed.try_recv().is_ok(), "then one without a token");
        assert!(!limiter.make_room() && worker_closed.try_recv().is_err(), "a worker stays");
        drop(busy);
        drop(stream);
        assert!(limiter.make_room() && worker_closed.try_recv().is_ok(), "unless it is idle");
        drop((worker, first, second));
        assert!(!limiter.make_room());
    }
}
