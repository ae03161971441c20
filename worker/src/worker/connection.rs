//! The line to the coordinator: made, lost, and made again.
//!
//! What is said over it goes through a courier, one thing at a time, who fetches reports from the
//! spool when it is their turn: however many wait, no more than a few are in memory.

use std::future::{self, Future};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::Lease;
use arbiter_proto::v1::coordinator_message::Payload as Heard;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{CoordinatorMessage, Hello, Welcome, WorkerMessage};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::backoff::{self, Backoff};
use crate::connect;
use crate::coordinator_clients::{Caller, Callers};
use crate::spool::Spool;

/// How long a coordinator may take to answer Hello.
const GREETING: Duration = Duration::from_secs(30);

/// Messages on their way to the network at a time, in memory.
const AHEAD: usize = 2;

/// What happened at the line.
#[derive(Debug)]
pub(super) enum Event {
    /// It is there.
    Open(Welcome),
    /// The coordinator said something.
    Heard(Box<Heard>),
    /// It is gone, or was not to be had, for this reason; it is tried again in this time.
    Lost(String, Duration),
    /// The coordinator does not want us, and asking again will not change that.
    Refused(String),
    /// It was hung up, and the coordinator did so too.
    Over,
}

/// What is to be sent.
enum Parcel {
    Payload(Box<Payload>),
    Report(Lease),
}

/// A line, which is open or will be again.
pub(super) struct Line {
    callers: Callers,
    hello: Hello,
    spool: Arc<Spool>,
    backoff: Backoff,
    state: State,
    /// Whether it was ever open.
    opened: bool,
}

/// A line being tried.
type Call = Pin<Box<dyn Future<Output = Result<(Box<Open>, Welcome), Status>> + Send>>;

enum State {
    /// It will be tried when this ends.
    Waiting(Pin<Box<Sleep>>),
    /// It is being tried.
    Calling(Call),
    Open(Box<Open>),
    /// It will not be used again.
    Closed,
}

struct Open {
    since: Instant,
    /// Where the courier takes what is to be sent; nowhere once it was hung up.
    parcels: Option<mpsc::UnboundedSender<Parcel>>,
    incoming: Streaming<CoordinatorMessage>,
    /// The courier, who ends with this.
    _courier: JoinSet<()>,
}

impl Line {
    /// A line that is tried at once.
    pub(super) fn new(callers: Callers, hello: Hello, spool: Arc<Spool>) -> Self {
        let backoff = Backoff::new(&hello.name, backoff::LEAST, backoff::MOST);
        let state = State::Waiting(Box::pin(sleep(Duration::ZERO)));
        Self { callers, hello, spool, backoff, state, opened: false }
    }

    /// Waits for the next thing to happen. Whoever stops waiting misses nothing.
    pub(super) async fn next(&mut self) -> Event {
        loop {
            match &mut self.state {
                State::Waiting(wait) => {
                    wait.await;
                    let (caller, hello) = (self.callers.current(), self.hello.clone());
                    let call = call(caller, hello, Arc::clone(&self.spool));
                    self.state = State::Calling(Box::pin(call));
                }
                State::Calling(call) => match call.await {
                    Ok((open, welcome)) => {
                        self.opened = true;
                        self.state = State::Open(open);
                        return Event::Open(welcome);
                    }
                    Err(status) => return self.lost(&status),
                },
                State::Open(open) => match open.incoming.message().await {
                    Ok(Some(CoordinatorMessage { payload: Some(heard) })) => {
                        // That our leases do not hold is said without a database, too.
                        if !matches!(heard, Heard::LeasesLost(_)) {
                            self.backoff.reset();
                        }
                        return Event::Heard(Box::new(heard));
                    }
                    // Something that this version does not know.
                    Ok(Some(CoordinatorMessage { payload: None })) => {}
                    Ok(None) | Err(_) if open.parcels.is_none() => {
                        self.state = State::Closed;
                        return Event::Over;
                    }
                    Ok(None) => return self.lost(&Status::unavailable("the stream ended")),
                    Err(status) => return self.lost(&status),
                },
                State::Closed => future::pending().await,
            }
        }
    }

    fn lost(&mut self, status: &Status) -> Event {
        if is_refusal(status) {
            self.state = State::Closed;
            let remedy = match status.code() {
                Code::FailedPrecondition => "",
                _ => "; set --token or ARBITER_TOKEN to a token of role worker",
            };
            return Event::Refused(format!("{}{remedy}", status.message()));
        }
        let cause = cause(status);
        // Whom we were at odds with from the beginning we were told to call in a wrong way. Later
        // it is the coordinator's certificate that is to blame, which will be renewed.
        if let Some(remedy) = connect::remedy(&cause).filter(|_| !self.opened) {
            self.state = State::Closed;
            return Event::Refused(format!("{cause}; {remedy}"));
        }
        self.callers.pass();
        // The welcome alone is not enough to begin again with short waits: a coordinator whose database
        // is full welcomes us and sends us away over our first report, again and again.
        if matches!(&self.state, State::Open(open) if open.since.elapsed() >= backoff::MOST) {
            self.backoff.reset();
        }
        let wait = self.backoff.next();
        self.state = State::Waiting(Box::pin(sleep(wait)));
        Event::Lost(cause, wait)
    }

    /// Whether something can be said now.
    pub(super) fn is_open(&self) -> bool {
        matches!(&self.state, State::Open(open) if open.parcels.is_some())
    }

    /// Says something, if the line is open; otherwise it is gone.
    pub(super) fn say(&self, say: Payload) {
        self.send(Parcel::Payload(Box::new(say)));
    }

    /// Sends the report of a lease, if the line is open.
    pub(super) fn report(&self, lease: Lease) {
        self.send(Parcel::Report(lease));
    }

    fn send(&self, parcel: Parcel) {
        if let State::Open(open) = &self.state
            && let Some(parcels) = &open.parcels
        {
            // The courier is gone when the stream is: that is heard, and said again later.
            drop(parcels.send(parcel));
        }
    }

    /// Calls once more, after the end.
    pub(super) fn call_again(&mut self) {
        self.state = State::Waiting(Box::pin(sleep(Duration::ZERO)));
    }

    /// Ends the line once everything is sent. [`Event::Over`] comes when the coordinator has heard
    /// it all; whether there is such an event to wait for.
    pub(super) fn hang_up(&mut self) -> bool {
        if let State::Open(open) = &mut self.state {
            open.parcels = None;
            return true;
        }
        self.state = State::Closed;
        false
    }
}

/// Calls the coordinator, and waits until it answers.
async fn call(
    mut caller: Caller,
    hello: Hello,
    spool: Arc<Spool>,
) -> Result<(Box<Open>, Welcome), Status> {
    let (parcels, orders) = mpsc::unbounded_channel();
    let (sender, messages) = mpsc::channel(AHEAD);
    let mut courier = JoinSet::new();
    courier.spawn(carry(orders, sender, spool));
    drop(parcels.send(Parcel::Payload(Box::new(Payload::Hello(hello)))));
    let greeting = async {
        let mut incoming = caller.work(ReceiverStream::new(messages)).await?.into_inner();
        match incoming.message().await? {
            Some(CoordinatorMessage { payload: Some(Heard::Welcome(welcome)) }) => {
                let (since, parcels) = (Instant::now(), Some(parcels));
                let open = Open { since, parcels, incoming, _courier: courier };
                Ok((Box::new(open), welcome))
            }
            Some(_) => Err(Status::internal("its first word was no welcome")),
            None => Err(Status::unavailable("the stream ended before a welcome")),
        }
    };
    let late = |_| Status::deadline_exceeded("the coordinator does not answer");
    timeout(GREETING, greeting).await.map_err(late)?
}

/// Takes what is to be sent to the network, in order.
async fn carry(
    mut parcels: mpsc::UnboundedReceiver<Parcel>,
    network: mpsc::Sender<WorkerMessage>,
    spool: Arc<Spool>,
) {
    while let Some(parcel) = parcels.recv().await {
        let say = match parcel {
            Parcel::Payload(say) => *say,
            Parcel::Report(lease) => {
                let spool = Arc::clone(&spool);
                let read = tokio::task::spawn_blocking(move || spool.read(lease));
                let Ok(Some(report)) = read.await else { continue };
                Payload::Report(report)
            }
        };
        if network.send(WorkerMessage { payload: Some(say) }).await.is_err() {
            return;
        }
    }
}

/// Whether a coordinator that answers so will answer so again.
fn is_refusal(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::FailedPrecondition
    )
}

/// Why a call failed: what is at the bottom of it.
fn cause(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(error) => connect::innermost(error),
        None => format!("{}: {}", status.code(), status.message()),
    }
}
