//! What happens to a call before its message is read: who calls is asked, from the head of the
//! request alone, and then no more of its body is taken than such a caller may send.
//!
//! # Theory of operation
//!
//! [`rule`] says of each method which role it needs and how large a message of it may be. A call
//! without a token that allows it is refused before a byte of its body is read. The services ask
//! for the role again: this is the first door and not the only one.
//!
//! A message is announced by its length. Before it is taken in, its bytes are reserved from the
//! [`Budgets`] of its kind of caller, and given back when the next message of the stream begins, or
//! whenever the service is done with it ([`Reservation`]). So the memory of all messages together
//! has a bound. One address, or one token, has a share of it, so that the messages which one caller
//! announces leave room for those of others. A message that arrives too slowly is refused, since its
//! reservation keeps others waiting.

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
use crate::access::open_tokens::OpenTokens;
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::connection_limit::Connection;
use crate::service::{Caller, Service};

/// The largest message of a call that everybody may make, in bytes: it names things.
const LARGEST_OF_GUESTS: usize = 16 << 10;
/// The largest message of a call that needs a token, in bytes: a tournament file, a piece of a
/// bundle.
const LARGEST_OF_CLIENTS: usize = 1 << 20;
/// The largest message of a worker, in bytes: a lot with all its records.
pub(super) const MAX_REPORT: usize = 512 << 20;

/// Bytes of messages in memory from callers without a token.
const GUESTS: usize = 16 << 20;
/// The same from players, organisers and administrators.
const CLIENTS: usize = 64 << 20;
/// The same from workers, of messages of up to [`SMALL_REPORT`].
const SMALL_REPORTS: usize = 64 << 20;
/// The same from workers, of larger ones: these wait for each other, and one that is larger than all
/// of it waits until there is no other. A report is in memory three times while it is stored.
const LARGE_REPORTS: usize = 128 << 20;
const SMALL_REPORT: usize = 1 << 20;

/// What one address without a token may have of [`GUESTS`], in bytes.
const SHARE_OF_ADDRESS: usize = GUESTS / 16;
/// What one token of a client may have of [`CLIENTS`].
const SHARE_OF_CLIENT: usize = CLIENTS / 8;
/// What one token of workers may have of [`SMALL_REPORTS`]: it may be that of many machines.
const SHARE_OF_WORKERS: usize = SMALL_REPORTS / 2;

/// The unit in which bytes are reserved.
const UNIT: usize = 1 << 10;

/// How long a message may take to arrive, however slowly it does; one that is the only message of
/// its call includes the end of the body.
const GRACE: Duration = Duration::from_secs(30);
/// How fast it has to arrive after that, in bytes a second, on average.
const RATE: u64 = 64 << 10;

/// Calls that may be open at a time from one address without a token.
const CALLS_OF_ADDRESS: usize = 512;
/// Calls that may be open at a time with one token.
const CALLS_OF_TOKEN: usize = 4096;
/// Calls that may be open at a time without a token, from all addresses.
const CALLS_OF_GUESTS: usize = 8192;

/// How the paths of our services begin; the others are health and reflection.
const OURS: &str = "/arbiter.v1.";

/// What a call needs, and may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// The role whose token it needs; none if everybody may call.
    role: Option<Role>,
    /// Its largest message, in bytes.
    largest: usize,
    /// Whether the caller may be silent between messages for as long as it likes.
    rests: bool,
    /// Whether its answer may last for long, and ends when its token does.
    lasts: bool,
}

/// What is known of a method of ours by its path. What is not known needs nothing and may send next
/// to nothing: it will be told that there is no such method.
fn rule(path: &str) -> Rule {
    let guest = Rule { role: None, largest: LARGEST_OF_GUESTS, rests: false, lasts: false };
    let needs = |role| Rule { role: Some(role), largest: LARGEST_OF_CLIENTS, ..guest };
    let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
        return guest;
    };
    match (service, method) {
        ("arbiter.v1.WorkerService", "Work") => {
            Rule { largest: MAX_REPORT, rests: true, ..needs(Role::Worker) }
        }
        ("arbiter.v1.WorkerService", _) => Rule { lasts: true, ..needs(Role::Worker) },
        ("arbiter.v1.TokenService", _) => needs(Role::Admin),
        ("arbiter.v1.BotService", "SubmitVersion" | "GetTrial" | "GetBotLog" | "WithdrawBot") => {
            needs(Role::Player)
        }
        ("arbiter.v1.TournamentService", "GetRecord") => {
            Rule { lasts: true, ..needs(Role::Player) }
        }
        ("arbiter.v1.RankingService", "WatchRanking")
        | ("arbiter.v1.TournamentService", "WatchEdition" | "ListMatches") => {
            Rule { lasts: true, ..guest }
        }
        ("arbiter.v1.BotService", "ListBots" | "GetBot")
        | ("arbiter.v1.RankingService", _)
        | (
            "arbiter.v1.TournamentService",
            "ListTournaments" | "GetTournament" | "CertifyEdition" | "CheckEdition"
            | "GetEditionSource" | "ListQuarantined" | "GetMatch",
        ) => guest,
        // A method that is new and not named here is for organisers until it is.
        (
            "arbiter.v1.AuditService" | "arbiter.v1.BotService" | "arbiter.v1.TournamentService",
            _,
        ) => needs(Role::Organiser),
        ("grpc.reflection.v1.ServerReflection", _) => Rule { rests: true, ..guest },
        _ => guest,
    }
}

/// The memory that messages may take, by who sends them; and the calls that are open.
#[derive(Clone, Debug)]
struct Budgets {
    guests: Arc<Semaphore>,
    clients: Arc<Semaphore>,
    small_reports: Arc<Semaphore>,
    large_reports: Arc<Semaphore>,
    callers: Arc<Mutex<HashMap<Key, Open>>>,
}

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Guests,
    Address(Option<IpAddr>),
    Token(i32),
}

/// What callers with the same key have open.
#[derive(Debug)]
struct Open {
    calls: usize,
    /// The bytes that they may reserve.
    share: Arc<Semaphore>,
}

/// What callers with the same key may have open.
#[derive(Clone, Copy, Debug)]
struct Most {
    key: Key,
    calls: usize,
    /// Bytes that they may reserve at a time.
    bytes: usize,
}

impl Default for Budgets {
    fn default() -> Self {
        let of = |bytes: usize| Arc::new(Semaphore::new(bytes / UNIT));
        Self {
            guests: of(GUESTS),
            clients: of(CLIENTS),
            small_reports: of(SMALL_REPORTS),
            large_reports: of(LARGE_REPORTS),
            callers: Arc::default(),
        }
    }
}

impl Budgets {
    /// From what a message is reserved, and whether it waits where nothing is left.
    fn of(&self, role: Option<Role>, length: usize) -> (&Arc<Semaphore>, bool) {
        match role {
            None => (&self.guests, false),
            Some(Role::Worker) if length <= SMALL_REPORT => (&self.small_reports, true),
            Some(Role::Worker) => (&self.large_reports, true),
            Some(_) => (&self.clients, false),
        }
    }

    /// Counts a call until what is returned is dropped.
    fn begin(&self, most: &[Most]) -> Result<OpenCall, Status> {
        let mut open = OpenCall { keys: Vec::new(), callers: Arc::clone(&self.callers) };
        for Most { key, calls: most, bytes } in most {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let of_key = callers.entry(*key).or_insert_with(|| Open {
                calls: 0,
                share: Arc::new(Semaphore::new(bytes / UNIT)),
            });
            if of_key.calls >= *most {
                return Err(Status::resource_exhausted(format!(
                    "{} calls from there are open, and no more than {most} may be; end some",
                    of_key.calls
                )));
            }
            of_key.calls += 1;
            open.keys.push(*key);
        }
        Ok(open)
    }
}

/// A call that is open.
#[derive(Debug)]
struct OpenCall {
    keys: Vec<Key>,
    callers: Arc<Mutex<HashMap<Key, Open>>>,
}

impl OpenCall {
    /// The shares of those that it is counted with.
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

/// Reserved bytes: of the budget, and of the shares of the caller.
#[derive(Debug)]
pub(super) struct Reserved(#[expect(dead_code, reason = "held until it is dropped")] Permits);

type Permits = Vec<OwnedSemaphorePermit>;

impl Reservation {
    /// Keeps the bytes reserved, also when further messages come, until what is returned is dropped.
    pub(super) fn take(&self) -> Option<Reserved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, permits: Permits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reserved(permits));
    }
}

/// What decides about calls.
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

    /// Counts a call of this caller, if it may call so.
    fn begin(&self, rule: Rule, caller: &Caller, origin: &Origin) -> Result<OpenCall, Status> {
        let Some(role) = rule.role else {
            let address = Key::Address(self.service.token_throttle.address(origin));
            return self.budgets.begin(&[
                Most { key: Key::Guests, calls: CALLS_OF_GUESTS, bytes: GUESTS },
                Most { key: address, calls: CALLS_OF_ADDRESS, bytes: SHARE_OF_ADDRESS },
            ]);
        };
        let key = Key::Token(caller.require(role)?.id.0);
        let bytes = if role == Role::Worker { SHARE_OF_WORKERS } else { SHARE_OF_CLIENT };
        self.budgets.begin(&[Most { key, calls: CALLS_OF_TOKEN, bytes }])
    }
}

/// Lets a call in, or refuses it. The use case finds the [`Caller`], and the session of a worker the
/// [`Origin`], the [`ConnectionInfo`] and the [`Reservation`], in the request's extensions.
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
    let found = if request.uri().path().starts_with(OURS) {
        admission.service.caller(secret.as_ref(), &origin).await
    } else {
        Ok(Caller::Anonymous)
    };
    let admitted = found.map_err(Status::from).and_then(|caller| {
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
        .filter(|_| rule.lasts)
        .map(|secret| admission.open_tokens.register(&secret, rule.role.is_some()));
    next.run(request).await.map(|body| {
        let body = Body::new(body.map_frame(move |frame| {
            // Both last as long as the answer.
            let _ = (&open, &active);
            frame
        }));
        match token {
            Some(token) => Body::new(RevocableBody::new(body, token)),
            None => body,
        }
    })
}

/// What the server tells of the connection that a call comes over.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionInfo {
    pub(super) peer: IpAddr,
    pub(super) connection: Arc<Connection>,
}

/// Bytes being reserved.
type Reserving = Pin<Box<dyn Future<Output = Option<Permits>> + Send>>;

/// From what the messages of a call are reserved, and where that is kept.
#[derive(Debug)]
struct Memory {
    budgets: Budgets,
    shares: Vec<Arc<Semaphore>>,
    reservation: Reservation,
}

impl Memory {
    /// Reserves the bytes of a message: the caller's shares first, so that only those who may have
    /// it wait for what all have together. What has to be waited for is returned.
    fn reserve(&self, role: Option<Role>, length: usize) -> Result<Option<Reserving>, Status> {
        // What was reserved for the message before is free, unless the service is not done with it.
        drop(self.reservation.take());
        let (budget, waits) = self.budgets.of(role, length);
        let most = if length > SMALL_REPORT { LARGE_REPORTS } else { length };
        let units = u32::try_from(length.min(most).div_ceil(UNIT)).unwrap_or(u32::MAX);
        // Large reports wait for each other, also those of different workers.
        let shares = if length > SMALL_REPORT { &[] } else { &self.shares[..] };
        let all = shares.iter().chain([budget]).map(Arc::clone);
        let at_once = all.clone().map(|one| one.try_acquire_many_owned(units));
        match at_once.collect::<Result<Permits, _>>() {
            Ok(permits) => {
                self.reservation.set(permits);
                Ok(None)
            }
            Err(_) if waits => {
                let all: Vec<_> = all.collect();
                Ok(Some(Box::pin(async move {
                    let mut permits = Vec::new();
                    for one in all {
                        permits.push(one.acquire_many_owned(units).await.ok()?);
                    }
                    Some(permits)
                })))
            }
            Err(_) => Err(Status::resource_exhausted(
                "too many send messages at this moment; try again in some seconds",
            )),
        }
    }
}

/// The body of a request, whose messages are announced before they are taken in.
struct LimitedBody {
    body: Body,
    rule: Rule,
    memory: Memory,
    /// What has come and was not passed on.
    rest: Bytes,
    /// What is still to be passed on of the message, with its announcement.
    left: usize,
    /// What the message waits for.
    reserving: Option<Reserving>,
    /// When the message began, or the call; nothing between the messages of a stream.
    since: Option<Instant>,
    /// Bytes of it that have come.
    arrived: u64,
    timer: Option<Pin<Box<Sleep>>>,
}

/// The length of the announcement of a message, in bytes.
const HEAD: usize = 5;

impl LimitedBody {
    fn new(body: Body, rule: Rule, memory: Memory) -> Self {
        Self {
            body,
            rule,
            memory,
            rest: Bytes::new(),
            left: 0,
            reserving: None,
            since: Some(Instant::now()),
            arrived: 0,
            timer: None,
        }
    }

    /// The length of the message that has begun to come, once it is known.
    fn announced(&self) -> Option<usize> {
        let length: [u8; 4] = self.rest.get(1..HEAD)?.try_into().ok()?;
        Some(usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX))
    }

    /// Adds to what has come. Announcements come in one piece, nearly always.
    fn add(&mut self, data: Bytes) {
        self.arrived += data.len() as u64;
        self.timer = None;
        let is_whole = self.rest.is_empty();
        self.rest = if is_whole { data } else { [&self.rest[..], &data[..]].concat().into() };
    }

    /// A message begins to be passed on.
    fn begin(&mut self) {
        (self.since, self.arrived, self.timer) = (Some(Instant::now()), 0, None);
    }

    /// Reserves the bytes of a message, or returns what it waits for.
    fn reserve(&self, length: usize) -> Result<Option<Reserving>, Status> {
        let largest = self.rule.largest;
        if length > largest {
            let (length, largest) = (Amount(length as u64), Amount(largest as u64));
            return Err(Status::resource_exhausted(format!(
                "a message of {length} is too large: this call takes at most {largest} at a time"
            )));
        }
        self.memory.reserve(self.rule.role, length)
    }

    /// Looks at the clock while nothing comes.
    fn late(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        let Some(since) = self.since else { return Poll::Pending };
        let due = since + GRACE + Duration::from_secs(self.arrived / RATE);
        let timer =
            self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due.into())));
        timer
            .as_mut()
            .poll(context)
            .map(|()| Status::deadline_exceeded("the message arrives too slowly; send it again"))
    }

    /// The next bytes of a message that is announced.
    fn contents(&mut self) -> Frame<Bytes> {
        let part = self.rest.split_to(self.left.min(self.rest.len()));
        self.left -= part.len();
        if self.left == 0 && self.rule.rests {
            self.since = None;
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
            if self.left > 0 && !self.rest.is_empty() {
                return Poll::Ready(Some(Ok(self.contents())));
            }
            if let Some(length) = self.announced() {
                self.left = HEAD.saturating_add(length);
                match self.reserve(length) {
                    Ok(None) => self.begin(),
                    Ok(waits) => self.reserving = waits,
                    Err(status) => return Poll::Ready(Some(Err(status))),
                }
                continue;
            }
            if !self.rest.is_empty() && self.since.is_none() {
                (self.since, self.arrived) = (Some(Instant::now()), 0);
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
                Poll::Pending => return self.late(context).map(|status| Some(Err(status))),
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
