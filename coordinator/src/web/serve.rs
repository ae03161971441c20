//! The HTTP server: connections, and how long each may keep it waiting.
//!
//! # Theory of operation
//!
//! Whoever connects costs a file descriptor and some memory, and could hold them for ever by saying
//! nothing, saying it a byte at a time, or not reading the answer. So each of these has its limit:
//!
//! - the head of a request has [`HEAD`] to arrive, from the connection or the answer before it;
//! - a body may take [`GRACE`], and after that has to come at [`RATE`] at least;
//! - an answer of which the reader takes nothing for a while is broken off.
//!
//! There are only so many connections ([`crate::connection_limit`]). A browser whose connection is ended
//! to make room for another while it watches something comes back by itself.
//!
//! A client may end its side of the connection after its request, as `nc -N` and `socat` do, and
//! still reads the answer. One that has gone away looks the same until something is written to it:
//! an answer ends its connection at the latest, and a live stream says every 15 s that it is there
//! (`live`), so that it ends with the second time.
//!
//! It speaks HTTP/1.1 and nothing else: what multiplexes is the business of a proxy.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use crate::connection_limit::{ConnectionLimiter, LimitedStream};
use crate::service::{ChangeNotifier, SHUTDOWN_GRACE};

/// How long the head of a request may take to arrive.
const HEAD: Duration = Duration::from_secs(20);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 32 << 10;
/// How long a body may take to arrive, however slowly it does.
const GRACE: Duration = Duration::from_secs(30);
/// How fast it has to arrive after that, in bytes a second, on average.
const RATE: u64 = 4096;
/// One in so many of the files that this process may open is for these connections.
const PART: u64 = 2;

/// Serves until the coordinator stops; then open answers end.
pub(super) async fn serve(
    listener: TcpListener,
    pages: Router,
    changes: ChangeNotifier,
) -> io::Result<()> {
    let limiter = ConnectionLimiter::new(PART);
    let mut guests = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = limiter.accept(&listener) => accepted,
            () = changes.stopped() => break,
        };
        while guests.try_join_next().is_some() {}
        let (stream, closed) = accepted;
        let attended = attend(stream, pages.clone(), changes.clone());
        guests.spawn(async move {
            tokio::select! { () = attended => {}, _ = closed => {} }
        });
    }
    // Those who do not leave by then are shown the door.
    let leaving = async { while guests.join_next().await.is_some() {} };
    drop(tokio::time::timeout(SHUTDOWN_GRACE, leaving).await);
    Ok(())
}

/// Answers the requests of a connection, one after the other.
async fn attend(stream: LimitedStream, pages: Router, changes: ChangeNotifier) {
    let pages = TowerToHyperService::new(pages);
    let (peer, connection) = (stream.peer, Arc::clone(&stream.connection));
    let answer = service_fn(move |request: Request<Incoming>| {
        let busy = connection.begin();
        let mut request = request.map(|body| Body::new(Arriving::new(body)));
        // Who is connected is asked for where tokens are shown.
        request.extensions_mut().insert(ConnectInfo(peer));
        let answering = pages.call(request);
        async move {
            let answer: Response = answering.await?;
            Ok::<_, Infallible>(answer.map(|body| {
                body.map_err(move |error| {
                    // It lasts as long as the answer.
                    let _ = &busy;
                    error
                })
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .half_close(true)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = changes.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio_stream::StreamExt as _;

    use super::*;

    /// How often a stream says something.
    const TICK: Duration = Duration::from_millis(10);

    /// How many streams are being written.
    static STREAMS: AtomicUsize = AtomicUsize::new(0);

    /// Counts a stream until it is dropped.
    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            STREAMS.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// A stream without an end, that says something all the time.
    async fn endless() -> Body {
        STREAMS.fetch_add(1, Ordering::SeqCst);
        let counted = Counted;
        let ticks = tokio_stream::iter(0..).then(|_: u64| tokio::time::sleep(TICK));
        Body::from_stream(ticks.map(move |()| {
            let _counted = &counted;
            Ok::<_, Infallible>("tick\n")
        }))
    }

    /// A server of pages for these tests; it stops when its task is aborted.
    async fn start() -> (SocketAddr, JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pages = Router::new()
            .route("/echo", post(|body: String| async move { body }))
            .route("/endless", get(endless));
        (address, tokio::spawn(serve(listener, pages, ChangeNotifier::default())))
    }

    /// A connection that has sent this.
    async fn sent(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// What comes until the end of the stream, which is soon.
    async fn rest(mut stream: TcpStream) -> String {
        let mut answer = Vec::new();
        let reading = stream.read_to_end(&mut answer);
        tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap().unwrap();
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_ends_its_side_is_answered() {
        let (address, serving) = start().await;
        for request in [
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nword",
            "POST /echo HTTP/1.0\r\nContent-Length: 4\r\n\r\nword",
        ] {
            let mut stream = sent(address, request).await;
            stream.shutdown().await.unwrap();
            let answer = rest(stream).await;
            assert!(answer.contains(" 200 ") && answer.ends_with("\r\n\r\nword"), "{answer}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn a_client_that_goes_away_within_a_request_is_not_waited_for() {
        let (address, serving) = start().await;
        for part in ["", "POST /ec", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nword"] {
            let mut stream = sent(address, part).await;
            stream.shutdown().await.unwrap();
            let answer = rest(stream).await;
            assert!(!answer.contains(" 200 "), "{answer}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn a_stream_ends_with_its_client() {
        let (address, serving) = start().await;
        let mut stream = sent(address, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
        stream.shutdown().await.unwrap();
        let mut read = vec![0; 4096];
        let mut total = 0;
        while total < read.len() {
            let count = stream.read(&mut read).await.unwrap();
            assert!(count > 0, "the stream goes on though nothing more will be asked");
            total += count;
        }
        assert_eq!(STREAMS.load(Ordering::SeqCst), 1);
        drop(stream);
        let gone = async {
            while STREAMS.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
        serving.abort();
    }
}
