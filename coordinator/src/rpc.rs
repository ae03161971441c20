//! What workers and clients call: the gRPC services `arbiter.v1`.
//!
//! Rankings, tournaments and bots may be looked at by everybody; every other call is checked for
//! the role that it needs, by the token it brings as `authorization: Bearer TOKEN`. Whatever
//! changes something is noted in the audit log. A message that means nothing is refused here, and
//! what goes on inwards are types that mean something.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_proto::ids::{EditionId, Entrant, TokenId};
use arbiter_proto::v1;
use arbiter_ranking::collusion::Collusion;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use sqlx::{PgExecutor, PgPool};
use time::OffsetDateTime;
use tokio::sync::watch;
use tokio_stream::Stream;
use tonic::{Code, Request, Status};

mod admission;
mod audit;
mod beacon;
mod bot;
mod bundles;
mod collusion;
mod derivation;
mod dropping;
mod edition_watch;
mod entry;
mod freeze;
mod matches;
mod outlook;
mod playing;
mod ranking;
mod reply_times;
mod revocation;
mod serve;
mod shadow;
mod status;
mod submission;
mod token;
mod tournament;
mod trial;
mod turns;
mod voiding;
mod watched;
mod worker;
mod worker_audit;

pub use admission::Budgets;
pub use bundles::BundlePieces;
pub use edition_watch::EditionWatches;
pub use outlook::counted_certificate;
pub(crate) use outlook::keep_pace;
pub use playing::Playing;
pub(crate) use ranking::place;
pub use revocation::OpenTokens;
pub(crate) use serve::LAST_CALLS;
pub use serve::{ServeError, Tls, serve};
pub(crate) use status::database;
pub(crate) use submission::LARGEST;
pub(crate) use trial::is_over as trial_is_over;
pub use turns::Turns;
pub use watched::Watched;
pub use worker::Returns;

use crate::access::guard::{Caller, Guard};
use crate::access::{self, Role, Secret, Token};
use crate::boards::Boards;
use crate::clearing::Clearing;
use crate::clock::Clock;
use crate::db::tournaments::Tournament;
use crate::db::{audit as log, bots, tournaments};
use crate::kept::Kept;
use crate::leader::Leadership;
use crate::queue::{Dispatcher, Queue, Reporter, Terms};
use crate::reply_times::ReplyTimes;
use crate::store::Store;
use crate::suspension::Suspensions;
use crate::tournament::handout::Handout;
use status::{later, missing};

/// How often those who watch something look at it although nobody has said that it changed:
/// another coordinator may have changed it.
const LOOK: Duration = Duration::from_secs(1);

/// A stream of answers.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;

/// What all services share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The database, for calls and pages: other connections than those of the queue, so that readers
    /// keep no worker waiting.
    pub pool: PgPool,
    /// Its queue.
    pub queue: Queue,
    /// The rules of leasing.
    pub terms: Terms,
    /// Where workers ask for lots.
    pub dispatcher: Dispatcher,
    /// Where they report them.
    pub reporter: Reporter,
    /// Leaderboards.
    pub boards: Boards,
    /// What becomes of lots on their way to a worker.
    pub handout: Arc<Handout>,
    /// Says when something changed.
    pub changes: Changes,
    /// Those who ask for much take turns.
    pub turns: Turns,
    /// Looks after those who show tokens.
    pub guard: Guard,
    /// Whether this coordinator leads those of its database.
    pub leadership: Leadership,
    /// Where records may be kept, if not in the database.
    pub store: Option<Store>,
    /// Clears away what was dropped.
    pub clearing: Clearing,
    /// What was counted of editions whose plans are whole.
    pub certificates: Kept<EditionId, v1::Certificate>,
    /// What was found of collusion in editions that are over.
    pub collusion: Kept<EditionId, Collusion>,
    /// How long bots take to answer.
    pub reply_times: Kept<(EditionId, Entrant), ReplyTimes>,
    /// What the workers play that are connected here.
    pub playing: Playing,
    /// How many leases workers gave back.
    pub returns: Returns,
    /// The tokens of open streams.
    pub open_tokens: OpenTokens,
    /// Pieces of bundles that workers fetch.
    pub bundles: BundlePieces,
    /// Leaderboards that are watched.
    pub watched: Watched,
    /// Editions that are watched.
    pub edition_watches: EditionWatches,
    /// The memory that messages may take, and the calls that may be open.
    pub budgets: Budgets,
    /// Workers that are suspended.
    pub suspensions: Suspensions,
    /// Tells the time.
    pub clock: Clock,
}

/// Which edition is meant where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The official one, or the newest if there is none yet.
    Official,
    /// The newest.
    Newest,
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    /// With which token.
    id: TokenId,
    /// What it allows.
    role: Role,
}

impl Who {
    /// Whether it is an organiser.
    fn organises(&self) -> bool {
        self.role.covers(Role::Organiser)
    }

    /// Whether a bot is the caller's to look after: organisers look after all.
    fn owns(&self, bot: &bots::Bot) -> bool {
        self.organises() || bot.owner == Some(self.id.0)
    }
}

/// Who looks at what everybody may look at: somebody with a token, or nobody in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Viewer(Option<Who>);

impl Viewer {
    /// Whether it is an organiser.
    fn organises(&self) -> bool {
        self.0.as_ref().is_some_and(Who::organises)
    }

    /// Whether something of this owner is the viewer's own.
    fn is(&self, owner: Option<i32>) -> bool {
        owner.is_some() && self.0.as_ref().map(|who| who.id.0) == owner
    }

    /// Whether what happened to something of this owner is for the viewer to know.
    fn minds(&self, owner: Option<i32>) -> bool {
        self.organises() || self.is(owner)
    }
}

/// Tells those who watch that something changed, and everybody when it is over.
#[derive(Clone, Debug)]
pub struct Changes {
    news: watch::Sender<()>,
    over: watch::Sender<bool>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { news: watch::Sender::new(()), over: watch::Sender::new(false) }
    }
}

impl Changes {
    /// Something changed.
    pub fn tell(&self) {
        self.news.send_replace(());
    }

    /// The coordinator stops: streams that have no end of their own end now.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Waits until the coordinator stops.
    pub(crate) async fn ended(&self) {
        // Only this may fail: that nobody can say so any more, which is the same.
        drop(self.over.subscribe().wait_for(|over| *over).await);
    }

    /// Somebody wants to know.
    fn watch(&self) -> Watching {
        Watching { news: self.news.subscribe(), changes: self.clone() }
    }
}

/// Somebody who wants to know when something changes.
#[derive(Debug)]
struct Watching {
    news: watch::Receiver<()>,
    changes: Changes,
}

impl Watching {
    /// Waits until it is worth while to look again; whether that was before `gone` and before the
    /// coordinator stopped.
    async fn next_unless(&mut self, gone: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = gone => false,
            () = self.changes.ended() => false,
            _ = self.news.changed() => true,
            () = tokio::time::sleep(LOOK) => true,
        }
    }
}

impl Shared {
    /// The time.
    fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Who calls, if that token allows what `role` is needed for.
    pub(crate) async fn admit<T>(&self, request: &Request<T>, role: Role) -> Result<Who, Status> {
        // Who called was found out before the message was read.
        if let Some(who) = request.extensions().get::<Who>() {
            return if who.role.covers(role) {
                Ok(who.clone())
            } else {
                Err(lacks(role, who.role))
            };
        }
        self.admit_bearer(secret(request), role, &caller(request)).await
    }

    /// The same by the token that came with the call, if one did.
    async fn admit_bearer(
        &self,
        secret: Option<Secret>,
        role: Role,
        caller: &Caller,
    ) -> Result<Who, Status> {
        let secret = secret
            .ok_or_else(|| Status::unauthenticated(format!("this needs a token of role {role}")))?;
        self.admit_secret(&secret, role, caller).await
    }

    /// Whose token this is, if it allows what `role` is needed for.
    async fn admit_secret(
        &self,
        secret: &Secret,
        role: Role,
        caller: &Caller,
    ) -> Result<Who, Status> {
        let token = self.find_token(secret, caller).await?.ok_or_else(|| {
            Status::unauthenticated("the token is not known here, or was revoked, or has expired")
        })?;
        if !token.role.covers(role) {
            return Err(lacks(role, token.role));
        }
        Ok(Who { id: token.id, role: token.role })
    }

    /// Who looks: nobody in particular, if no token comes along or it is not good any more.
    pub(crate) async fn viewer<T>(&self, request: &Request<T>) -> Result<Viewer, Status> {
        let Some(secret) = secret(request) else { return Ok(Viewer::default()) };
        let found = match self.find_token(&secret, &caller(request)).await {
            // Too many were wrong: most likely this one is, too.
            Err(status) if status.code() == Code::ResourceExhausted => None,
            found => found?,
        };
        Ok(Viewer(found.map(|token| Who { id: token.id, role: token.role })))
    }

    /// The token that somebody shows, if it is good. Who has shown too many that are not is told to
    /// wait.
    pub(crate) async fn find_token(
        &self,
        secret: &Secret,
        caller: &Caller,
    ) -> Result<Option<Token>, Status> {
        self.guard
            .admits(secret, caller, Instant::now())
            .map_err(|wait| later("too many tokens from there are not known here", wait))?;
        let found = access::find(self.queue.pool(), secret, self.now()).await.map_err(database)?;
        match found {
            Some(_) => self.guard.right(secret, Instant::now()),
            None => self.guard.wrong(secret, caller, Instant::now()),
        }
        Ok(found)
    }

    /// Whether a token lets somebody in. That an organiser has come is noted.
    pub(crate) async fn log_in(&self, secret: &Secret, caller: &Caller) -> Result<bool, Status> {
        let found = self.find_token(secret, caller).await?;
        if let Some(token) = found.as_ref().filter(|token| token.role.covers(Role::Organiser)) {
            let (id, now) = (token.id, self.now());
            let subject = format!("{id} {} {}", token.role, token.name);
            let noted = log::write(&self.pool, Some(id), "token login", &subject, None, now).await;
            noted.map_err(database)?;
        }
        Ok(found.is_some())
    }

    /// Notes who changed what, in the transaction that changes it. A subject begins with the name of
    /// its tournament; [`change`] makes the detail.
    async fn note_in(
        &self,
        db: impl PgExecutor<'_>,
        who: &Who,
        action: &str,
        subject: &str,
        detail: Option<&Value>,
    ) -> Result<(), Status> {
        tracing::info!(token = %who.id, action, subject, "changed");
        let noted = log::write(db, Some(who.id), action, subject, detail, self.now());
        noted.await.map_err(database)
    }

    /// The tournament of this name.
    async fn tournament(&self, name: &str) -> Result<Tournament, Status> {
        let found = tournaments::find(&self.pool, name).await.map_err(database)?;
        found.ok_or_else(|| missing("tournament", name))
    }
}

/// The detail of a line in the audit log: what was so before, and what is so now.
fn change(before: &Value, after: &Value) -> Value {
    json!({ "before": before, "after": after })
}

/// Where a call comes from: pages say so of those who look at them.
fn caller<T>(request: &Request<T>) -> Caller {
    if let Some(caller) = request.extensions().get::<Caller>() {
        return caller.clone();
    }
    let peer = request.remote_addr().map(|address| address.ip());
    Caller::new(peer, request.metadata().as_ref())
}

/// The token that a call brings.
fn secret<T>(request: &Request<T>) -> Option<Secret> {
    bearer(request.metadata().as_ref())
}

/// The token in the head of a request.
fn bearer(headers: &HeaderMap) -> Option<Secret> {
    let header = headers.get("authorization")?.to_str().ok()?;
    header.strip_prefix("Bearer ").map(|text| Secret::from(text.to_owned()))
}

/// The refusal of a token that does not allow what `role` is needed for.
fn lacks(role: Role, own: Role) -> Status {
    Status::permission_denied(format!("this needs a token of role {role}, not {own}"))
}

/// A time as messages carry it: microseconds since 1970.
fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}
