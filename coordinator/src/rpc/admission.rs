//! Admission control: identifies the caller from the headers of a request, before its body is read,
//! and limits how much of the body is read.
//!
//! # Theory of operation
//!
//! [`rule`] gives the role and the largest message of each method. A call without a sufficient
//! token is refused before a byte of its body is read. The services check the role again.
//!
//! Each message begins with its length. Before it is read, its bytes are reserved from the
//! [`Budgets`] of its kind of caller. They are freed when the next message of the stream begins, or
//! when the service is done with the message ([`Reservation`]). So the memory of all messages is
//! limited. Each address and each token has a share, so that one caller leaves room for others. A
//! message that arrives too slowly is refused, since its reservation blocks others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use arbiter_proto::limits::Bytes as Amount;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;
use tonic::Status;

use super::revocation::RevocableBody;
use crate::access::stream_revocation::OpenTokens;
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::boxed_future::BoxedFuture;
use crate::connection_limit::Connection;
use crate::service::{Caller, Service};

/// The largest message of a call without a token, in bytes: it contains names only.
const MAX_GUEST_MESSAGE: usize = 16 << 10;
/// The largest message of a call with a client's token, in bytes: a tournament file, a piece of a
/// bundle.
const MAX_CLIENT_MESSAGE: usize = 1 << 20;
/// The largest message of a worker, in bytes: a lot with all its records.
pub(super) const MAX_REPORT: usize = 512 << 20;

/// Bytes of messages in memory from callers without a token.
const GUEST_BUDGET: usize = 16 << 20;
/// Bytes of messages in memory from players, organisers and administrators.
const CLIENT_BUDGET: usize = 64 << 20;
/// Bytes of messages in memory from workers, for messages of up to [`MAX_SMALL_REPORT`].
const SMALL_REPORT_BUDGET: usize = 64 << 20;
/// Bytes of messages in memory from workers, for larger messages. They wait until the budget is
/// free. A message larger than the budget waits for the whole budget. While a report is stored,
/// memory holds three copies of it.
const LARGE_REPORT_BUDGET: usize = 128 << 20;
const MAX_SMALL_REPORT: usize = 1 << 20;

/// The share of [`GUEST_BUDGET`] for one address without a token, in bytes.
const ADDRESS_SHARE: usize = GUEST_BUDGET / 16;
/// The share of [`CLIENT_BUDGET`] for one token of a client.
const CLIENT_TOKEN_SHARE: usize = CLIENT_BUDGET / 8;
/// The share of [`SMALL_REPORT_BUDGET`] for one token of workers, which many machines may use.
const WORKER_TOKEN_SHARE: usize = SMALL_REPORT_BUDGET / 2;

/// The unit in which bytes are reserved.
const UNIT: usize = 1 << 10;

/// How long a message may take to arrive at any speed. A single message of a call includes the end
/// of the body.
const GRACE: Duration = Duration::from_secs(30);
/// The slowest average speed after that, in bytes a second.
const RATE: u64 = 64 << 10;

/// Calls that may be open at a time from one address without a token.
const MAX_CALLS_PER_ADDRESS: usize = 512;
/// Calls that may be open at a time with one token.
const MAX_CALLS_PER_TOKEN: usize = 4096;
/// Calls that may be open at a time without a token, from all addresses.
const MAX_GUEST_CALLS: usize = 8192;

/// The prefix of the paths of Arbiter's services. The other services are health and reflection.
const ARBITER_SERVICES: &str = "/arbiter.v1.";

/// The required role and the limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The required role; `None` if no token is needed.
    role: Option<Role>,
    /// The maximum length of a message, in bytes.
    max_message: usize,
    /// Whether the caller may pause between messages.
    may_pause: bool,
    /// Whether its response is a long stream, which ends with the token.
    is_long_stream: bool,
}

/// The rule of a method by its path. An unknown method gets the smallest limits and no role, so
/// that its caller gets the error "unimplemented".
fn rule(path: &str) -> Rule {
    let guest = Rule {
        role: None,
        max_message: MAX_GUEST_MESSAGE,
        may_pause: false,
        is_long_stream: false,
    };
    let with_role = |role| Rule { role: Some(role), max_message: MAX_CLIENT_MESSAGE, ..guest };
    let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
        return guest;
    };
    match (service, method) {
        ("arbiter.v1.WorkerService", "Work") => {
            Rule { max_message: MAX_REPORT, may_pause: true, ..with_role(Role::Worker) }
        }
        ("arbiter.v1.WorkerService", _) => Rule { is_long_stream: true, ..with_role(Role::Worker) },
        ("arbiter.v1.BotService", "SubmitVersion" | "GetTrial" | "GetBotLog" | "WithdrawBot") => {
            with_role(Role::Player)
        }
        ("arbiter.v1.RankingService", "WatchRanking")
        | (
            "arbiter.v1.TournamentService",
            "WatchEdition" | "ListMatches" | "GetPackage" | "GetRecord",
        ) => Rule { is_long_stream: true, ..guest },
        ("arbiter.v1.BotService", "ListBots" | "GetBot")
        | ("arbiter.v1.RankingService", _)
        | (
            "arbiter.v1.TournamentService",
            "ListTournaments" | "GetTournament" | "GetRounds" | "CertifyEdition" | "CheckEdition"
            | "GetEditionSource" | "ListSetAside" | "GetMatch",
        ) => guest,
        // A new method is for organisers until it is added here.
        (
            "arbiter.v1.AuditService"
            | "arbiter.v1.BotService"
            | "arbiter.v1.TokenService"
            | "arbiter.v1.TournamentService",
            _,
        ) => with_role(Role::Organiser),
        ("grpc.reflection.v1.ServerReflection", _) => Rule { may_pause: true, ..guest },
        _ => guest,
    }
}

/// The memory for messages, by kind of caller, and the open calls.
#[derive(Clone, Debug)]
struct Budgets {
    guests: Arc<Semaphore>,
    clients: Arc<Semaphore>,
    small_reports: Arc<Semaphore>,
    large_reports: Arc<Semaphore>,
    callers: Arc<Mutex<HashMap<Key, OpenCalls>>>,
}

/// The group of callers whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Guests,
    Address(Option<IpAddr>),
    Token(i32),
}

/// The open calls of one key.
#[derive(Debug)]
struct OpenCalls {
    calls: usize,
    /// The bytes that these callers may reserve.
    share: Arc<Semaphore>,
}

/// The limits of one key.
#[derive(Clone, Copy, Debug)]
struct KeyLimit {
    key: Key,
    calls: usize,
    /// Bytes that they may reserve at a time.
    bytes: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        let semaphore = |bytes: usize| Arc::new(Semaphore::new(bytes / UNIT));
        Self {
            guests: semaphore(GUEST_BUDGET),
            clients: semaphore(CLIENT_BUDGET),
            small_reports: semaphore(SMALL_REPORT_BUDGET),
            large_reports: semaphore(LARGE_REPORT_BUDGET),
            callers: Arc::default(),
        }
    }
}

impl Budgets {
    /// The budget of a message, and whether the message waits if the budget is used up.
    fn of(&self, role: Option<Role>, length: usize) -> (&Arc<Semaphore>, bool) {
        match role {
            None => (&self.guests, false),
            Some(Role::Worker) if length <= MAX_SMALL_REPORT => (&self.small_reports, true),
            Some(Role::Worker) => (&self.large_reports, true),
            Some(_) => (&self.clients, false),
        }
    }

    /// Counts a call until the returned value is dropped.
    fn begin(&self, limits: &[KeyLimit]) -> Result<OpenCall, Status> {
        let mut open = OpenCall { keys: Vec::new(), callers: Arc::clone(&self.callers) };
        for KeyLimit { key, calls: max_calls, bytes } in limits {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let open_calls = callers.entry(*key).or_insert_with(|| OpenCalls {
                calls: 0,
                share: Arc::new(Semaphore::new(bytes / UNIT)),
            });
            if open_calls.calls >= *max_calls {
                return Err(Status::resource_exhausted(format!(
                    "you have {} open calls, and at most {max_calls} are allowed; close some",
                    open_calls.calls
                )));
            }
            open_calls.calls += 1;
            open.keys.push(*key);
        }
        Ok(open)
    }
}

/// An open call.
#[derive(Debug)]
struct OpenCall {
    keys: Vec<Key>,
    callers: Arc<Mutex<HashMap<Key, OpenCalls>>>,
}

impl OpenCall {
    /// The shares of its keys.
    fn shares(&self) -> Vec<Arc<Semaphore>> {
        let callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        let share = |key| callers.get(key).map(|open| Arc::clone(&open.share));
        self.keys.iter().filter_map(share).collect()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            if let Some(open) = callers.get_mut(key) {
                open.calls -= 1;
                if open.calls == 0 {
                    callers.remove(key);
                }
            }
        }
    }
}

/// The bytes that are reserved for the last message of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Reservation(Arc<Mutex<Option<Reserved>>>);

/// Reserved bytes: from the budget and from the shares of the caller.
#[derive(Debug)]
pub(super) struct Reserved(#[expect(dead_code, reason = "held until it is dropped")] Permits);

type Permits = Vec<OwnedSemaphorePermit>;

impl Reservation {
    /// Keeps the bytes reserved, even when further messages arrive, until the returned value is
    /// dropped.
    pub(super) fn take(&self) -> Option<Reserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, permits: Permits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reserved(permits));
    }
}

/// Admits calls.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    pub(super) service: Service,
    pub(super) open_tokens: OpenTokens,
    budgets: Budgets,
}

impl Admission {
    pub(super) fn new(service: Service, open_tokens: OpenTokens) -> Self {
        Self { service, open_tokens, budgets: Budgets::default() }
    }

    /// Counts a call, if this caller may make it.
    fn begin(&self, rule: Rule, caller: &Caller, origin: &Origin) -> Result<OpenCall, Status> {
        let Some(role) = rule.role else {
            let address = Key::Address(self.service.token_throttle.address(origin));
            return self.budgets.begin(&[
                KeyLimit { key: Key::Guests, calls: MAX_GUEST_CALLS, bytes: GUEST_BUDGET },
                KeyLimit { key: address, calls: MAX_CALLS_PER_ADDRESS, bytes: ADDRESS_SHARE },
            ]);
        };
        let key = Key::Token(caller.require(role)?.id.0);
        let bytes = if role == Role::Worker { WORKER_TOKEN_SHARE } else { CLIENT_TOKEN_SHARE };
        self.budgets.begin(&[KeyLimit { key, calls: MAX_CALLS_PER_TOKEN, bytes }])
    }
}

/// Admits or refuses a call. It adds the [`Caller`] to the request's extensions for the use case,
/// and the [`Origin`], the [`ConnectionInfo`] and the [`Reservation`] for the session of a worker.
pub(super) async fn admit_call(
    State(admission): State<Admission>,
    mut request: Request,
    next: Next,
) -> Response {
    let rule = rule(request.uri().path());
    let secret = Secret::bearer(request.headers());
    let connection = request.extensions().get::<ConnectionInfo>().cloned();
    let peer = connection.as_ref().map(|connection| connection.peer);
    let origin = Origin::new(peer, request.headers());
    let identified = if request.uri().path().starts_with(ARBITER_SERVICES) {
        admission.service.caller(secret.as_ref(), &origin).await
    } else {
        Ok(Caller::Anonymous)
    };
    let admitted = identified.map_err(Status::from).and_then(|caller| {
        let open = admission.begin(rule, &caller, &origin)?;
        Ok((caller, open))
    });
    let (caller, open) = match admitted {
        Ok(admitted) => admitted,
        Err(status) => return status.into_http(),
    };
    let connection = connection.map(|connection| connection.connection);
    if let (Some(_), Some(connection)) = (rule.role, &connection) {
        connection.trust();
    }
    let active = connection.map(|connection| connection.begin());
    let reservation = Reservation::default();
    let budgets = admission.budgets.clone();
    let memory = Memory { budgets, shares: open.shares(), reservation: reservation.clone() };
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(origin);
    request.extensions_mut().insert(reservation);
    let request = request.map(|body| Body::new(LimitedBody::new(body, rule, memory)));
    let token = secret
        .filter(|_| rule.is_long_stream)
        .map(|secret| admission.open_tokens.register(&secret, rule.role.is_some()));
    next.run(request).await.map(|body| {
        let body = Body::new(body.map_frame(move |frame| {
            // `open` and `active` must live as long as the response.
            let _ = (&open, &active);
            frame
        }));
        match token {
            Some(token) => Body::new(RevocableBody::new(body, token)),
            None => body,
        }
    })
}

/// The connection of a call, from the server.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(super) peer: IpAddr,
    pub(super) connection: Arc<Connection>,
}

/// A pending reservation.
type Reserving = BoxedFuture<Option<Permits>>;

/// The budgets, shares and reservation of a call's messages.
#[derive(Debug)]
struct Memory {
    budgets: Budgets,
    shares: Vec<Arc<Semaphore>>,
    reservation: Reservation,
}

impl Memory {
    /// Reserves the bytes of a message: the caller's shares first, so that a caller without a share
    /// holds nothing of the common budget. Returns a reservation that must be waited for.
    fn reserve(&self, role: Option<Role>, length: usize) -> Result<Option<Reserving>, Status> {
        // This frees the bytes of the message before, unless the service took them.
        drop(self.reservation.take());
        let (budget, waits) = self.budgets.of(role, length);
        let cap = if length > MAX_SMALL_REPORT { LARGE_REPORT_BUDGET } else { length };
        let units = u32::try_from(length.min(cap).div_ceil(UNIT)).unwrap_or(u32::MAX);
        // Large reports wait for each other, also those of different workers.
        let shares = if length > MAX_SMALL_REPORT { &[] } else { &self.shares[..] };
        let all = shares.iter().chain([budget]).map(Arc::clone);
        let immediate = all.clone().map(|semaphore| semaphore.try_acquire_many_owned(units));
        match immediate.collect::<Result<Permits, _>>() {
            Ok(permits) => {
                self.reservation.set(permits);
                Ok(None)
            }
            Err(_) if waits => {
                let all: Vec<_> = all.collect();
                Ok(Some(Box::pin(async move {
                    let mut permits = Vec::new();
                    for semaphore in all {
                        permits.push(semaphore.acquire_many_owned(units).await.ok()?);
                    }
                    Some(permits)
                })))
            }
            Err(_) => Err(Status::resource_exhausted(
                "too many messages are being received; try again in some seconds",
            )),
        }
    }
}

/// The body of a request. The bytes of each message are reserved before it is read.
struct LimitedBody {
    body: Body,
    rule: Rule,
    memory: Memory,
    /// Bytes that have arrived and are not passed on yet.
    buffered: Bytes,
    /// Bytes of the message, with its head, that are still to be passed on.
    remaining: usize,
    /// The reservation that the message waits for.
    reserving: Option<Reserving>,
    /// When the message or the call began; `None` between the messages of a stream.
    message_start: Option<Instant>,
    /// Bytes of the message that have arrived.
    arrived: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

/// The length of the head of a message, in bytes.
const HEAD: usize = 5;

impl LimitedBody {
    fn new(body: Body, rule: Rule, memory: Memory) -> Self {
        Self {
            body,
            rule,
            memory,
            buffered: Bytes::new(),
            remaining: 0,
            reserving: None,
            message_start: Some(Instant::now()),
            arrived: 0,
            timer: None,
        }
    }

    /// The length of the message that is arriving, once it is known.
    fn announced_len(&self) -> Option<usize> {
        let length: [u8; 4] = self.buffered.get(1..HEAD)?.try_into().ok()?;
        Some(usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
    }

    /// Appends arrived bytes. A head nearly always arrives in one piece.
    fn add(&mut self, data: Bytes) {
        self.arrived += data.len() as u64;
        self.timer = None;
        let is_whole = self.buffered.is_empty();
        self.buffered =
            if is_whole { data } else { [&self.buffered[..], &data[..]].concat().into() };
    }

    /// Restarts the timer for a message that is now passed on.
    fn begin(&mut self) {
        (self.message_start, self.arrived, self.timer) = (Some(Instant::now()), 0, None);
    }

    /// Reserves the bytes of a message, or returns a pending reservation.
    fn reserve(&self, length: usize) -> Result<Option<Reserving>, Status> {
        let max_message = self.rule.max_message;
        if length > max_message {
            let length = Amount(length as u64);
            let max_message = Amount(max_message as u64);
            return Err(Status::resource_exhausted(format!(
                "a message of {length} is too large: this call takes at most {max_message} at a time"
            )));
        }
        self.memory.reserve(self.rule.role, length)
    }

    /// The error of a message that arrives too slowly, once it is late.
    fn poll_timeout(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let Some(start) = self.message_start else { return Poll::Pending };
        let due = start + GRACE + Duration::from_secs(self.arrived / RATE);
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due.into())));
        timer
            .as_mut()
            .poll(context)
            .map(|()| Status::deadline_exceeded("the message arrives too slowly; send it again"))
    }

    /// The next bytes of the message.
    fn next_part(&mut self) -> Frame<Bytes> {
        let part = self.buffered.split_to(self.remaining.min(self.buffered.len()));
        self.remaining -= part.len();
        if self.remaining == 0 && self.rule.may_pause {
            self.message_start = None;
        }
        Frame::data(part)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        loop {
            if let Some(reserving) = &mut self.reserving {
                let permits = ready!(reserving.as_mut().poll(context));
                self.reserving = None;
                if let Some(permits) = permits {
                    self.memory.reservation.set(permits);
                }
                self.begin();
            }
            if self.remaining > 0 && !self.buffered.is_empty() {
                return Poll::Ready(Some(Ok(self.next_part())));
            }
            if let Some(length) = self.announced_len() {
                self.remaining = HEAD.saturating_add(length);
                match self.reserve(length) {
                    Ok(None) => self.begin(),
                    Ok(waits) => self.reserving = waits,
                    Err(status) => return Poll::Ready(Some(Err(status))),
                }
                continue;
            }
            if !self.buffered.is_empty() && self.message_start.is_none() {
                (self.message_start, self.arrived) = (Some(Instant::now()), 0);
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.add(data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(Status::from_error(error.into()))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return self.poll_timeout(context).map(|status| Some(Err(status))),
            }
        }
    }
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.poll(context)
    }
}

#[cfg(test)]
mod tests;
