//! The connection to the coordinator, with automatic reconnection.
//!
//! A writer task sends one message at a time. It reads each report from the spool directly before
//! it sends the report, so that only few reports are in memory.

use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::Lease;
use arbiter_proto::v1::coordinator_message::Payload as Received;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{CoordinatorMessage, Hello, Welcome, WorkerMessage};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::backoff::{self, Backoff};
use crate::connect;
use crate::coordinator_clients::{CoordinatorClient, CoordinatorClients};
use crate::spool::Spool;

/// How long a coordinator may take to respond to Hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);

/// Number of messages buffered in memory before the network.
const SEND_BUFFER: usize = 2;

/// An event of the connection.
#[derive(Debug)]
pub(super) enum ConnectionEvent {
    /// The connection is open.
    Open(Welcome),
    /// The coordinator sent a message.
    Received(Box<Received>),
    /// The connection broke or failed, with the cause and the wait before the next attempt.
    Lost(String, Duration),
    /// The coordinator refused the worker. A retry would not help.
    Refused(String),
    /// Both sides closed the connection.
    Closed,
}

/// A queued message.
enum Outgoing {
    Message(Box<Payload>),
    Report(Lease),
}

/// A connection that reopens itself after a failure.
pub(super) struct Connection {
    clients: CoordinatorClients,
    hello: Hello,
    spool: Arc<Spool>,
    backoff: Backoff,
    state: ConnectionState,
    /// Whether the connection was open at least once.
    was_open: bool,
}

/// An attempt to connect.
type Connecting = Pin<Box<dyn Future<Output = Result<(Box<Open>, Welcome), Status>> + Send>>;

enum ConnectionState {
    /// The next attempt starts when the sleep ends.
    Waiting(Pin<Box<Sleep>>),
    Connecting(Connecting),
    Open(Box<Open>),
    Closed,
}

struct Open {
    since: Instant,
    /// The writer task's queue. `None` after a call of [`Connection::close`].
    outgoing: Option<mpsc::UnboundedSender<Outgoing>>,
    incoming: Streaming<CoordinatorMessage>,
    /// The writer task. Dropping this aborts it.
    _writer: JoinSet<()>,
}

impl Connection {
    /// A connection whose first attempt starts at once.
    pub(super) fn new(clients: CoordinatorClients, hello: Hello, spool: Arc<Spool>) -> Self {
        let backoff = Backoff::new(&hello.name, backoff::MIN_RECONNECT, backoff::MAX_RECONNECT);
        let state = ConnectionState::Waiting(Box::pin(sleep(Duration::ZERO)));
        Self { clients, hello, spool, backoff, state, was_open: false }
    }

    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> ConnectionEvent {
        loop {
            match &mut self.state {
                ConnectionState::Waiting(wait) => {
                    wait.await;
                    let client = self.clients.current();
                    let spool = Arc::clone(&self.spool);
                    let connecting = open_stream(client, self.hello.clone(), spool);
                    self.state = ConnectionState::Connecting(Box::pin(connecting));
                }
                ConnectionState::Connecting(connecting) => match connecting.await {
                    Ok((open, welcome)) => {
                        self.was_open = true;
                        self.state = ConnectionState::Open(open);
                        return ConnectionEvent::Open(welcome);
                    }
                    Err(status) => return self.lose(&status),
                },
                ConnectionState::Open(open) => match open.incoming.message().await {
                    Ok(Some(CoordinatorMessage { payload: Some(message) })) => {
                        // A coordinator sends `LeasesLost` even while its database is down.
                        if !matches!(message, Received::LeasesLost(_)) {
                            self.backoff.reset();
                        }
                        return ConnectionEvent::Received(Box::new(message));
                    }
                    // A message type of a newer coordinator.
                    Ok(Some(CoordinatorMessage { payload: None })) => {}
                    Ok(None) | Err(_) if open.outgoing.is_none() => {
                        self.state = ConnectionState::Closed;
                        return ConnectionEvent::Closed;
                    }
                    Ok(None) => return self.lose(&Status::unavailable("the stream ended")),
                    Err(status) => return self.lose(&status),
                },
                ConnectionState::Closed => future::pending().await,
            }
        }
    }

    fn lose(&mut self, status: &Status) -> ConnectionEvent {
        if is_refusal(status) {
            self.state = ConnectionState::Closed;
            let remedy = match status.code() {
                Code::FailedPrecondition => "",
                _ => "; set --token or ARBITER_TOKEN to a token of role worker",
            };
            return ConnectionEvent::Refused(format!("{}{remedy}", status.message()));
        }
        let cause = cause(status);
        // Before the first connection, such an error means wrong options. Later it means that the
        // coordinator's certificate expired. Then retry until its operator has renewed it.
        if let Some(remedy) = connect::remedy(&cause).filter(|_| !self.was_open) {
            self.state = ConnectionState::Closed;
            return ConnectionEvent::Refused(format!("{cause}; {remedy}"));
        }
        self.clients.fail_over();
        // A Welcome alone does not reset the backoff. A coordinator with a full database sends a
        // Welcome to each connection, and then breaks it at the first report.
        if matches!(&self.state, ConnectionState::Open(open) if open.since.elapsed() >= backoff::MAX_RECONNECT)
        {
            self.backoff.reset();
        }
        let wait = self.backoff.next();
        self.state = ConnectionState::Waiting(Box::pin(sleep(wait)));
        ConnectionEvent::Lost(cause, wait)
    }

    /// Whether messages can be sent now.
    pub(super) fn is_open(&self) -> bool {
        matches!(&self.state, ConnectionState::Open(open) if open.outgoing.is_some())
    }

    /// Queues a message. Drops it if the connection is not open.
    pub(super) fn send(&self, payload: Payload) {
        self.enqueue(Outgoing::Message(Box::new(payload)));
    }

    /// Queues the report of a lease. Does nothing if the connection is not open.
    pub(super) fn send_report(&self, lease: Lease) {
        self.enqueue(Outgoing::Report(lease));
    }

    fn enqueue(&self, message: Outgoing) {
        if let ConnectionState::Open(open) = &self.state
            && let Some(outgoing) = &open.outgoing
        {
            // The send fails if the stream has ended. `next` reports that, and the caller sends
            // again.
            drop(outgoing.send(message));
        }
    }

    /// Opens the connection again after it was closed.
    pub(super) fn reconnect(&mut self) {
        self.state = ConnectionState::Waiting(Box::pin(sleep(Duration::ZERO)));
    }

    /// Closes the connection after all queued messages. Returns whether it was open. If so,
    /// [`ConnectionEvent::Closed`] follows when the coordinator has read all of them.
    pub(super) fn close(&mut self) -> bool {
        if let ConnectionState::Open(open) = &mut self.state {
            open.outgoing = None;
            return true;
        }
        self.state = ConnectionState::Closed;
        false
    }
}

/// Opens a stream to the coordinator and waits for its Welcome.
async fn open_stream(
    mut client: CoordinatorClient,
    hello: Hello,
    spool: Arc<Spool>,
) -> Result<(Box<Open>, Welcome), Status> {
    let (outgoing, queue) = mpsc::unbounded_channel();
    let (sender, messages) = mpsc::channel(SEND_BUFFER);
    let mut writer = JoinSet::new();
    writer.spawn(write_messages(queue, sender, spool));
    drop(outgoing.send(Outgoing::Message(Box::new(Payload::Hello(hello)))));
    let handshake = async {
        let mut incoming = client.work(ReceiverStream::new(messages)).await?.into_inner();
        match incoming.message().await? {
            Some(CoordinatorMessage { payload: Some(Received::Welcome(welcome)) }) => {
                let since = Instant::now();
                let open = Open { since, outgoing: Some(outgoing), incoming, _writer: writer };
                Ok((Box::new(open), welcome))
            }
            Some(_) => Err(Status::internal("the coordinator's first message was not a Welcome")),
            None => Err(Status::unavailable("the stream ended before a Welcome")),
        }
    };
    let to_timeout = |_| Status::deadline_exceeded("the coordinator does not respond");
    timeout(HELLO_TIMEOUT, handshake).await.map_err(to_timeout)?
}

/// Sends queued messages in order.
async fn write_messages(
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
    network: mpsc::Sender<WorkerMessage>,
    spool: Arc<Spool>,
) {
    while let Some(message) = outgoing.recv().await {
        let payload = match message {
            Outgoing::Message(payload) => *payload,
            Outgoing::Report(lease) => {
                let spool = Arc::clone(&spool);
                let read = tokio::task::spawn_blocking(move || spool.read(lease));
                let Ok(Some(report)) = read.await else { continue };
                Payload::Report(report)
            }
        };
        if network.send(WorkerMessage { payload: Some(payload) }).await.is_err() {
            return;
        }
    }
}

/// Whether the coordinator would refuse another attempt as well.
fn is_refusal(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition
    )
}

/// The root cause of a failed call.
fn cause(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(error) => connect::root_cause(error),
        None => format!("{}: {}", status.code(), status.message()),
    }
}
