//! The HTTP server: connections and their timeouts.
//!
//! # Theory of operation
//!
//! A connection costs a file descriptor and some memory. A client could hold them for ever by
//! sending nothing, sending one byte at a time, or not reading the response. So there are timeouts:
//!
//! - The head of a request must arrive within [`HEADER_TIMEOUT`] after the connection was opened or
//!   after the previous response.
//! - A body may take [`BODY_GRACE`]; after that it must arrive at [`MIN_BODY_RATE`] or faster.
//! - A response is aborted if the client reads nothing of it for a while.
//!
//! The number of connections is limited ([`crate::connection_limit`]). If the connection of a
//! browser that watches a live page is closed to make room, the browser reconnects.
//!
//! A client may close its sending side after its request, as `nc -N` and `socat` do, and still read
//! the response. A client that is gone looks the same until a write to it fails. A response ends
//! its connection at the latest then. A live stream writes a keep-alive every 15 s (`sse`), so it
//! ends with the second one.
//!
//! The server supports HTTP/1.1 only. A proxy can add HTTP/2.

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

/// The time for the head of a request to arrive.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum size of the head of a request, in bytes.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// A body may arrive at any rate for this long.
const BODY_GRACE: Duration = Duration::from_secs(30);
/// The minimum average rate of a body after that, in bytes per second.
const MIN_BODY_RATE: u64 = 4096;
/// These connections may use one in so many of the file descriptors of this process.
const DESCRIPTOR_SHARE: u64 = 2;

/// Serves until the coordinator stops, then ends open responses.
pub(super) async fn serve(
    listener: TcpListener,
    pages: Router,
    changes: ChangeNotifier,
) -> io::Result<()> {
    let limiter = ConnectionLimiter::new(DESCRIPTOR_SHARE);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = limiter.accept(&listener) => accepted,
            () = changes.stopped() => break,
        };
        while connections.try_join_next().is_some() {}
        let (stream, closed) = accepted;
        let served = serve_connection(stream, pages.clone(), changes.clone());
        connections.spawn(async move {
            tokio::select! { () = served => {}, _ = closed => {} }
        });
    }
    // Connections that are still open after the timeout are dropped.
    let all_closed = async { while connections.join_next().await.is_some() {} };
    drop(tokio::time::timeout(SHUTDOWN_GRACE, all_closed).await);
    Ok(())
}

/// Handles the requests of a connection, one after the other.
async fn serve_connection(stream: LimitedStream, pages: Router, changes: ChangeNotifier) {
    let pages = TowerToHyperService::new(pages);
    let peer = stream.peer;
    let connection = Arc::clone(&stream.connection);
    let handler = service_fn(move |request: Request<Incoming>| {
        let busy = connection.begin();
        let mut request = request.map(|body| Body::new(TimedBody::new(body)));
        // The token throttle needs the address of the client.
        request.extensions_mut().insert(ConnectInfo(peer));
        let response = pages.call(request);
        async move {
            let response: Response = response.await?;
            Ok::<_, Infallible>(response.map(|body| {
                body.map_err(move |error| {
                    // The guard lives as long as the body.
                    let _ = &busy;
                    error
                })
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .half_close(true)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), handler);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = changes.stopped() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

/// The body of a request, with a timeout.
#[derive(Debug)]
struct TimedBody {
    body: Incoming,
    since: Instant,
    /// Bytes received.
    received: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

impl TimedBody {
    fn new(body: Incoming) -> Self {
        Self { body, since: Instant::now(), received: 0, timer: None }
    }
}

impl HttpBody for TimedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            if let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref))
            {
                self.received += data.map_or(0, |data| data.len() as u64);
                self.timer = None;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(axum::Error::new)));
        }
        let due = self.since + BODY_GRACE + Duration::from_secs(self.received / MIN_BODY_RATE);
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

    /// The interval of the messages of a stream.
    const TICK: Duration = Duration::from_millis(10);

    /// The number of open streams.
    static STREAMS: AtomicUsize = AtomicUsize::new(0);

    /// Counts a stream until it is dropped.
    struct Counted;

    impl Drop for Counted {
        fn drop(&mut self) {
            STREAMS.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// A stream without an end.
    async fn endless() -> Body {
        STREAMS.fetch_add(1, Ordering::SeqCst);
        let counted = Counted;
        let ticks = tokio_stream::iter(0..).then(|_: u64| tokio::time::sleep(TICK));
        Body::from_stream(ticks.map(move |()| {
            let _counted = &counted;
            Ok::<_, Infallible>("tick\n")
        }))
    }

    /// Starts a server. It stops when its task is aborted.
    async fn start() -> (SocketAddr, JoinHandle<io::Result<()>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pages = Router::new()
            .route("/echo", post(|body: String| async move { body }))
            .route("/endless", get(endless));
        (address, tokio::spawn(serve(listener, pages, ChangeNotifier::default())))
    }

    /// Opens a connection and sends a text.
    async fn send(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Reads to the end of the stream.
    async fn read_to_end(mut stream: TcpStream) -> String {
        let mut response = Vec::new();
        let reading = stream.read_to_end(&mut response);
        tokio::time::timeout(Duration::from_secs(10), reading).await.unwrap().unwrap();
        String::from_utf8(response).unwrap()
    }

    #[tokio::test]
    async fn a_client_that_closes_its_sending_side_gets_a_response() {
        let (address, serving) = start().await;
        for request in [
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nword",
            "POST /echo HTTP/1.0\r\nContent-Length: 4\r\n\r\nword",
        ] {
            let mut stream = send(address, request).await;
            stream.shutdown().await.unwrap();
            let response = read_to_end(stream).await;
            assert!(response.contains(" 200 ") && response.ends_with("\r\n\r\nword"), "{response}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn a_connection_that_closes_within_a_request_ends_at_once() {
        let (address, serving) = start().await;
        for part in ["", "POST /ec", "POST /echo HTTP/1.1\r\nContent-Length: 9\r\n\r\nword"] {
            let mut stream = send(address, part).await;
            stream.shutdown().await.unwrap();
            let response = read_to_end(stream).await;
            assert!(!response.contains(" 200 "), "{response}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn a_stream_ends_when_its_client_disconnects() {
        let (address, serving) = start().await;
        let mut stream = send(address, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
        stream.shutdown().await.unwrap();
        let mut read = vec![0; 4096];
        let mut total = 0;
        while total < read.len() {
            let count = stream.read(&mut read).await.unwrap();
            assert!(count > 0, "the stream continues after the client closed its sending side");
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
