//! The HTTP server: connections, and how long each may keep it waiting.
//!
//! # Theory of operation
//!
//! Whoever connects costs a file descriptor and some memory, and could hold them for ever by saying
//! nothing, saying it a byte at a time, or not reading the answer. So each of these has its limit:
//!
//! - the head of a request has [`HEAD`] to arrive, from the connection or the answer before it;
//! - a body may take [`GRACE`], and after that has to come at [`RATE`] at least;
//! - an answer of which the reader takes nothing for [`STALL`] is broken off.
//!
//! There are only so many connections. When all are taken and somebody new comes, the one that has
//! waited longest without a request is ended, or, if there is none, the one whose request is the
//! oldest: a browser that watches something comes back by itself. So whoever holds connections open
//! keeps nobody out.
//!
//! It speaks HTTP/1.1 and nothing else: what multiplexes is the business of a proxy.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Sleep, sleep};

use crate::rpc::{Changes, LAST_CALLS};

/// How long the head of a request may take to arrive.
const HEAD: Duration = Duration::from_secs(20);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 32 << 10;
/// How long a body may take to arrive, however slowly it does.
const GRACE: Duration = Duration::from_secs(30);
/// How fast it has to arrive after that, in bytes a second, on average.
const RATE: u64 = 4096;
/// How long a reader may take nothing of an answer.
const STALL: Duration = Duration::from_secs(30);
/// Connections at most, if the system lets us have so many files open.
const MOST: u64 = 4096;
/// How long it is waited before somebody is let in when no file descriptor is left.
const NO_ROOM: Duration = Duration::from_millis(100);

/// Serves until the coordinator stops; then open answers end.
///
/// # Errors
/// If the port fails.
pub(super) async fn serve(
    listener: TcpListener,
    pages: Router,
    changes: Changes,
) -> io::Result<()> {
    let hall = Arc::new(Hall::new());
    let mut guests = JoinSet::new();
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_theirs(&error) => continue,
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken; trying again");
                    hall.make_room();
                    sleep(NO_ROOM).await;
                    continue;
                }
            },
            () = changes.ended() => break,
        };
        while guests.try_join_next().is_some() {}
        if hall.is_full() {
            hall.make_room();
        }
        let guest = hall.enter();
        let number = guest.number;
        let handle = guests.spawn(attend(stream, peer, pages.clone(), guest, changes.clone()));
        hall.knows(number, handle);
    }
    // Those who do not leave by then are shown the door.
    let leaving = async { while guests.join_next().await.is_some() {} };
    drop(tokio::time::timeout(LAST_CALLS, leaving).await);
    Ok(())
}

/// Whether a connection broke before it was taken.
fn is_theirs(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    [ConnectionAborted, ConnectionRefused, ConnectionReset].contains(&error.kind())
}

/// Answers the requests of a connection, one after the other.
async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    pages: Router,
    guest: Guest,
    changes: Changes,
) {
    // A few bytes of a stream of events are not to wait for more.
    drop(stream.set_nodelay(true));
    let guest = Arc::new(guest);
    let pages = TowerToHyperService::new(pages);
    let answer = service_fn(move |request: Request<Incoming>| {
        let busy = guest.begin();
        let mut request = request.map(|body| Body::new(Arriving::new(body)));
        // Who is connected is asked for where tokens are shown.
        request.extensions_mut().insert(ConnectInfo(peer));
        let answering = pages.call(request);
        async move {
            let answer: Response = answering.await?;
            Ok::<_, Infallible>(answer.map(|body| Leaving { body, _busy: busy }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), answer);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = changes.ended() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// A connection, as far as it matters to the others.
#[derive(Debug)]
struct Known {
    /// Whether a request is being answered.
    busy: bool,
    /// Since when.
    since: Instant,
    /// Ends it.
    handle: Option<AbortHandle>,
}

/// All connections.
#[derive(Debug)]
struct Hall {
    most: usize,
    known: Mutex<HashMap<u64, Known>>,
    next: Mutex<u64>,
}

impl Hall {
    fn new() -> Self {
        // Half of them are for the database, workers, records and what else there is.
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from((files / 2).clamp(16, MOST)).unwrap_or(usize::MAX);
        Self { most, known: Mutex::default(), next: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full(&self) -> bool {
        self.known().len() >= self.most
    }

    /// Takes somebody in.
    fn enter(self: &Arc<Self>) -> Guest {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next += 1;
        let known = Known { busy: false, since: Instant::now(), handle: None };
        self.known().insert(*next, known);
        Guest { number: *next, hall: Arc::clone(self) }
    }

    /// Takes note of how a connection is ended.
    fn knows(&self, number: u64, handle: AbortHandle) {
        if let Some(known) = self.known().get_mut(&number) {
            known.handle = Some(handle);
        }
    }

    /// Ends the connection that can be missed most easily.
    fn make_room(&self) {
        let mut known = self.known();
        let oldest = known.iter().min_by_key(|(_, one)| (one.busy, one.since));
        let Some(number) = oldest.map(|(number, _)| *number) else { return };
        if let Some(handle) = known.remove(&number).and_then(|gone| gone.handle) {
            handle.abort();
        }
    }
}

/// One connection, until it is dropped.
#[derive(Debug)]
struct Guest {
    number: u64,
    hall: Arc<Hall>,
}

impl Guest {
    fn note(&self, busy: bool) {
        if let Some(known) = self.hall.known().get_mut(&self.number) {
            (known.busy, known.since) = (busy, Instant::now());
        }
    }

    /// A request begins; it ends when what is returned is dropped.
    fn begin(self: &Arc<Self>) -> Busy {
        self.note(true);
        Busy(Arc::clone(self))
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.hall.known().remove(&self.number);
    }
}

/// A request that is being answered.
#[derive(Debug)]
struct Busy(Arc<Guest>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.note(false);
    }
}

/// The body of an answer.
#[derive(Debug)]
struct Leaving {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, which has to arrive in time.
#[derive(Debug)]
struct Arriving {
    body: Incoming,
    since: Instant,
    /// How many bytes have come.
    arrived: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Arriving {
    fn new(body: Incoming) -> Self {
        Self { body, since: Instant::now(), arrived: 0, timer: None }
    }
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref))
            {
                self.arrived += data.map_or(0, |data| data.len() as u64);
                self.timer = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let due = self.since + GRACE + Duration::from_secs(self.arrived / RATE);
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due.into())));
        timer.as_mut().poll(context).map(|()| {
            let late = io::Error::new(io::ErrorKind::TimedOut, "the body arrives too slowly");
            Some(Err(axum::Error::new(late)))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection whose reader has to read.
#[derive(Debug)]
struct Patient {
    stream: TcpStream,
    /// Runs while the reader takes nothing.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream) -> Self {
        Self { stream, timer: None }
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

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Patient {
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

    #[tokio::test]
    async fn those_who_say_nothing_make_room_first() {
        let hall = Arc::new(Hall { most: 2, ..Hall::new() });
        let idle = || tokio::spawn(std::future::pending::<()>());
        let guests = [Arc::new(hall.enter()), Arc::new(hall.enter())];
        let tasks = [idle(), idle()];
        for (guest, task) in guests.iter().zip(&tasks) {
            hall.knows(guest.number, task.abort_handle());
        }
        assert!(hall.is_full());
        let busy = guests[0].begin();
        hall.make_room();
        let [first, second] = tasks;
        assert!(second.await.unwrap_err().is_cancelled());
        assert!(!hall.is_full() && !first.is_finished());
        hall.make_room();
        assert!(first.await.unwrap_err().is_cancelled(), "if all are busy, the oldest goes");
        drop(busy);
        hall.make_room();
    }
}
