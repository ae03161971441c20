//! The use cases: what clients and workers can ask for and do, one function each.
//!
//! A use case takes a [`Caller`] and a request, decides whether that caller may do or see it, and
//! gives an answer or a [`ServiceError`] in words for the caller. It knows nothing of gRPC or HTTP:
//! `rpc` and `web` translate. Answers are the messages of `arbiter.v1`, which is what every interface
//! shows in its own form. Whatever changes something is noted in the audit log, in the same
//! transaction.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use arbiter_games::Games;
use arbiter_proto::ids::EditionId;
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use arbiter_ranking::collusion::Collusion;
use serde_json::{Value, json};
use sqlx::{PgExecutor, PgPool};
use time::{OffsetDateTime, UtcOffset};
use tokio::task::JoinSet;
use tokio_stream::Stream;

mod aside;
mod audit_log;
mod beacon;
mod bots;
mod bundles;
mod caller;
mod changes;
mod collusion;
mod deletion;
mod derivation;
mod edition_watch;
mod entry_policy;
mod error;
mod estimates;
mod matches;
mod overview;
mod rankings;
mod reply_times;
mod reports;
mod returns;
mod schedules;
mod shadows;
mod submissions;
mod subscriptions;
mod tokens;
mod tournaments;
mod trials;
mod turns;
mod visibility;
mod voiding;
mod worker_audit;
mod workers;

pub use caller::{Caller, Principal};
pub use changes::Changes;
pub(crate) use changes::LAST_CALLS;
pub use error::{ErrorKind, ServiceError};
pub use estimates::counted_certificate;
pub(crate) use overview::WorkersOverview;
pub(crate) use rankings::place;
pub(crate) use reports::{Contents, Delivery};
pub(crate) use schedules::Planned;
pub(crate) use submissions::LARGEST as LARGEST_BUNDLE;
pub(crate) use trials::is_over as trial_is_over;
pub use workers::WorkerService;
pub(crate) use workers::{Greeted, MOST_SLOTS, suspended};

use crate::access::token_throttle::TokenThrottle;
use crate::cache::Cache;
use crate::database_clock::Clock;
use crate::db::tournaments::Tournament;
use crate::db::{audit_log as audit_lines, tournaments as stored};
use crate::leader_election::Leadership;
use crate::leaderboard_cache::LeaderboardCache;
use crate::metrics::{Metrics, Observer, Sources};
use crate::queue::{ActiveLeases, Dispatcher, Queue};
use crate::record_store::RecordStore;
use crate::reply_times::ReplyTimes;
use crate::retention::Cleaner;
use crate::worker_suspension::Suspensions;
use edition_watch::EditionWatches;
use subscriptions::Watched;
use turns::Turns;

/// Certificates that are kept.
const CERTIFICATES: usize = 256;
/// Editions whose search for collusion is kept, 100 KB each.
const COLLUSIONS: usize = 32;
/// Bots whose reply times are kept.
const REPLY_TIMES: usize = 10_000;

/// What a use case comes to.
pub(crate) type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// A stream of answers.
pub(crate) type Answers<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send + 'static>>;

/// The use cases of clients. Clones are the same service.
#[derive(Clone, Debug)]
pub struct Service(Arc<Parts>);

/// What the use cases of clients work with.
#[derive(Debug)]
pub struct Parts {
    /// The database, for readers: other connections than those of the queue, so that readers keep no
    /// worker waiting.
    pub(crate) pool: PgPool,
    pub(crate) queue: Queue,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) playing: ActiveLeases,
    boards: LeaderboardCache,
    store: Option<RecordStore>,
    clearing: Cleaner,
    pub(crate) suspensions: Suspensions,
    pub(crate) changes: Changes,
    pub(crate) guard: TokenThrottle,
    pub(crate) clock: Clock,
    /// How long a lease lasts.
    pub(crate) lease: time::Duration,
    turns: Turns,
    /// Certificates of editions whose plans are whole.
    certificates: Cache<EditionId, v1::Certificate>,
    /// Searches for collusion in editions that are over.
    collusion: Cache<EditionId, Collusion>,
    reply_times: Cache<(EditionId, Entrant), ReplyTimes>,
    watched: Watched,
    edition_watches: EditionWatches,
}

/// What a [`Service`] is made of.
#[derive(Debug)]
pub struct ServiceConfig {
    /// The database, for readers.
    pub pool: PgPool,
    /// The queue.
    pub queue: Queue,
    /// Where workers wait for lots.
    pub dispatcher: Dispatcher,
    /// Where records are, if not in the database.
    pub store: Option<RecordStore>,
    /// Deletes dropped tournaments.
    pub clearing: Cleaner,
    /// Limits invalid tokens.
    pub guard: TokenThrottle,
    /// Tells the time.
    pub clock: Clock,
    /// How long a lease lasts.
    pub lease: time::Duration,
}

/// Which edition is meant where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// The official one, or the newest if there is none yet.
    Official,
    /// The newest.
    Newest,
}

impl Deref for Service {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Service {
    /// The use cases of clients over this database and this queue.
    pub fn new(config: ServiceConfig) -> Self {
        let ServiceConfig { pool, queue, dispatcher, store, clearing, guard, clock, lease } =
            config;
        Self(Arc::new(Parts {
            boards: LeaderboardCache::new(pool.clone(), queue.games().clone()),
            playing: ActiveLeases::default(),
            suspensions: Suspensions::default(),
            changes: Changes::default(),
            turns: Turns::default(),
            certificates: Cache::new(CERTIFICATES),
            collusion: Cache::new(COLLUSIONS),
            reply_times: Cache::new(REPLY_TIMES),
            watched: Watched::default(),
            edition_watches: EditionWatches::default(),
            pool,
            queue,
            dispatcher,
            store,
            clearing,
            guard,
            clock,
            lease,
        }))
    }

    /// Reads the figures of this coordinator, for operators.
    pub(crate) fn observer(&self, leadership: Leadership) -> Observer {
        Observer::new(Sources {
            pool: self.pool.clone(),
            metrics: Arc::clone(self.metrics()),
            leadership,
            clock: self.clock.clone(),
            lease: self.lease,
        })
    }

    /// Follows the database as long as the coordinator runs: its clock, who is suspended, and what is
    /// to be deleted.
    pub(crate) fn watch_database(&self, background: &mut JoinSet<()>) {
        let (clearing, clock, suspensions) =
            (self.clearing.clone(), self.clock.clone(), self.suspensions.clone());
        let (of_clock, of_suspensions) = (self.queue.pool().clone(), self.queue.pool().clone());
        background.spawn(async move { clearing.run().await });
        background.spawn(async move { clock.follow(&of_clock).await });
        background.spawn(async move { suspensions.run(&of_suspensions).await });
    }

    /// The games that are known here.
    pub(crate) fn games(&self) -> &Games {
        self.queue.games()
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        self.queue.metrics()
    }

    /// The time.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Notes who changed what, in the transaction that changes it. A subject begins with the name of
    /// its tournament; [`change`] makes the detail.
    async fn note_in(
        &self,
        db: impl PgExecutor<'_>,
        who: &Principal,
        action: &str,
        subject: &str,
        detail: Option<&Value>,
    ) -> Result<()> {
        tracing::info!(token = %who.id, action, subject, "changed");
        Ok(audit_lines::write(db, Some(who.id), action, subject, detail, self.now()).await?)
    }

    /// The tournament of this name.
    async fn tournament(&self, name: &str) -> Result<Tournament> {
        let found = stored::find(&self.pool, name).await?;
        found.ok_or_else(|| ServiceError::missing("tournament", name))
    }
}

/// The detail of a line in the audit log: what was so before, and what is so now.
fn change(before: &Value, after: &Value) -> Value {
    json!({ "before": before, "after": after })
}

/// A time as messages carry it: microseconds since 1970.
fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// A time from a message: microseconds since 1970.
fn time_of(micros: i64) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000)
        .map_err(|error| ServiceError::invalid_argument(error.to_string()))
}

/// A time for people.
fn moment(time: OffsetDateTime) -> String {
    let time = time.to_offset(UtcOffset::UTC);
    let (date, (hour, minute, second)) = (time.date(), time.to_hms());
    format!("{date} {hour:02}:{minute:02}:{second:02} UTC")
}
