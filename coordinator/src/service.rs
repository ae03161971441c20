//! The use cases of clients and workers, one function each.
//!
//! A use case takes a [`Caller`] and a request, checks the caller's permission, and returns a
//! response or a [`ServiceError`] with a message for the caller. It does not depend on gRPC or
//! HTTP: `rpc` and `web` convert requests and responses. Responses are messages of `arbiter.v1`.
//! Every change is recorded in the audit log, in the same transaction.

use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchId, MatchName, MatchNumber, TournamentId};
use arbiter_proto::v1;
use arbiter_ranking::Entrant;
use arbiter_ranking::collusion::Collusion;
use serde_json::Value;
use sqlx::{PgPool, Postgres, Transaction};
use time::{OffsetDateTime, UtcOffset};
use tokio::task::JoinSet;
use tokio_stream::Stream;

mod audit_log;
mod beacon;
mod bot_names;
mod bots;
mod bracket;
mod bundle_stream;
mod caller;
mod change_notifier;
mod collusion;
mod concurrency_limit;
mod counted_results;
mod edition_watch;
mod edits;
mod entry_forecast;
mod entry_policy;
mod entry_state;
mod error;
mod estimates;
mod game_guides;
mod game_packages;
mod home;
mod leaderboard_freeze;
mod lease_return_limit;
mod match_invalidation;
mod match_list;
mod matches;
mod newest_matches;
mod overview;
mod own_bots;
mod piece_reader;
mod plan_verification;
mod play_conditions;
mod progress_cache;
mod ranking_watch;
mod rankings;
mod received_bundle;
mod records;
mod refreshed_cache;
mod rehearsals;
mod replay_record;
mod reply_times;
mod reports;
mod rounds;
mod set_aside_matches;
mod statistics;
mod statistics_cache;
mod submissions;
mod tokens;
mod tournament_heading;
mod tournaments;
mod trials;
mod watches;
mod worker_audit;
mod workers;

pub(crate) use bot_names::RESERVED_BOT_NAMES;
pub(crate) use bracket::{Bracket, BracketBot, BracketMeeting, BracketRound};
pub use caller::{Caller, Principal};
pub use change_notifier::ChangeNotifier;
pub(crate) use change_notifier::SHUTDOWN_GRACE;
pub use counted_results::{CountedResults, EditionStatistics, ReadError};
pub(crate) use entry_state::{EntryState, TournamentEnd};
pub use error::{ErrorKind, ServiceError};
pub use estimates::counted_certificate;
pub(crate) use game_guides::GameGuide;
pub(crate) use home::{Leader, TournamentCard};
pub(crate) use matches::Planned;
pub(crate) use overview::WorkersOverview;
pub(crate) use own_bots::{OwnBot, OwnMatch};
pub(crate) use play_conditions::{ConnectedWorkers, PlayConditions};
pub(crate) use rankings::place;
pub(crate) use received_bundle::MAX_BUNDLE;
pub(crate) use records::{HeldRecord, RecordKey};
pub(crate) use replay_record::{ReplayRecord, cannot_replay};
pub(crate) use reports::{Delivery, DeliveryContents};
pub use set_aside_matches::SetAsideGroup;
pub(crate) use tournament_heading::{RoundsView, TournamentHeading, schedule_in, unit_of};
pub(crate) use trials::is_over as trial_is_over;
pub use workers::WorkerService;
pub(crate) use workers::{AdmittedWorker, MAX_SLOTS, is_program_name, suspended};

use crate::access::token_throttle::TokenThrottle;
use crate::cache::Cache;
use crate::database_clock::Clock;
use crate::db::tournaments::Tournament;
use crate::db::{audit_log as audit_log_rows, tournaments as tournament_rows};
use crate::leader_election::Leadership;
use crate::leaderboard_cache::LeaderboardCache;
use crate::metrics::{Metrics, Observer, Sources};
use crate::queue::{ActiveLeases, Dispatcher, Queue};
use crate::record_store::RecordStore;
use crate::reply_times::ReplyTimes;
use crate::retention::Cleaner;
use crate::tournament::entry_outlook::EntryOutlook;
use crate::worker_suspension::Suspensions;
use bot_names::NamesWithOwners;
use bundle_stream::BundlePieces;
use concurrency_limit::ConcurrencyLimit;
use edition_watch::EditionWatches;
use game_guides::GuideCache;
use game_packages::InspectedPackage;
use newest_matches::NewestMatches;
use progress_cache::ProgressCache;
use ranking_watch::RankingWatches;
use records::PublicReads;
use rounds::RoundsCache;
use statistics_cache::StatisticsCache;

/// Maximum number of certificates in the cache.
const MAX_CERTIFICATES: usize = 256;
/// Maximum number of collusion searches in the cache: one for each edition, about 100 KB each.
const MAX_COLLUSIONS: usize = 32;
/// Maximum number of editions whose plans are described in the cache.
const MAX_PLAN_SUMMARIES: usize = 1024;
/// Maximum number of bots whose reply times are in the cache.
const MAX_REPLY_TIMES: usize = 10_000;

/// The result of a use case.
pub(crate) type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// A stream of responses.
pub(crate) type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send + 'static>>;

/// The use cases of clients. Clones are the same service.
#[derive(Clone, Debug)]
pub struct Service(Arc<Parts>);

/// The data that the use cases of clients share.
#[derive(Debug)]
pub struct Parts {
    /// The database, for readers. Readers have separate connections, so that they never delay the
    /// queue and its workers.
    pub(crate) pool: PgPool,
    pub(crate) queue: Queue,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) playing: ActiveLeases,
    boards: LeaderboardCache,
    statistics: StatisticsCache,
    store: Option<RecordStore>,
    cleaner: Cleaner,
    pub(crate) suspensions: Suspensions,
    pub(crate) changes: ChangeNotifier,
    pub(crate) token_throttle: TokenThrottle,
    pub(crate) clock: Clock,
    query_limit: ConcurrencyLimit,
    public_reads: PublicReads,
    /// Certificates of editions whose plans are complete.
    certificates: Cache<EditionId, v1::Certificate>,
    /// Searches for collusion in editions that are over.
    collusion: Cache<EditionId, Collusion>,
    reply_times: Cache<(EditionId, Entrant), ReplyTimes>,
    rounds: RoundsCache,
    ranking_watches: RankingWatches,
    progress_cache: ProgressCache,
    newest_matches: NewestMatches,
    names_with_owners: NamesWithOwners,
    home_pages: home::HomePages,
    /// How the plans of editions were made, one line for people.
    plan_summaries: Cache<EditionId, Option<String>>,
    /// What next editions will lack if one more bot enters, one line for people.
    new_bot_outlooks: Cache<TournamentId, Option<String>>,
    entry_outlook: EntryOutlook,
    edition_watches: EditionWatches,
    bundles: BundlePieces,
    guides: GuideCache,
    inspected: Cache<[u8; 32], InspectedPackage>,
}

/// The parameters of [`Service::new`].
#[derive(Debug)]
pub struct ServiceConfig {
    /// The database, for readers.
    pub pool: PgPool,
    /// The queue.
    pub queue: Queue,
    /// Where workers wait for lots.
    pub dispatcher: Dispatcher,
    /// The store of records. None if records are in the database.
    pub store: Option<RecordStore>,
    /// Deletes dropped tournaments.
    pub cleaner: Cleaner,
    /// Limits how many invalid tokens an address may send.
    pub token_throttle: TokenThrottle,
    /// The time of the database.
    pub clock: Clock,
}

/// The edition to which a request without a number refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultEdition {
    /// The official edition, or the newest if there is no official one yet.
    Official,
    /// The newest edition.
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
        let ServiceConfig { pool, queue, dispatcher, store, cleaner, token_throttle, clock } =
            config;
        Self(Arc::new(Parts {
            boards: LeaderboardCache::new(pool.clone(), queue.games().clone()),
            statistics: StatisticsCache::new(pool.clone()),
            playing: ActiveLeases::default(),
            suspensions: Suspensions::default(),
            changes: ChangeNotifier::default(),
            query_limit: ConcurrencyLimit::default(),
            public_reads: PublicReads::default(),
            certificates: Cache::new(MAX_CERTIFICATES),
            collusion: Cache::new(MAX_COLLUSIONS),
            reply_times: Cache::new(MAX_REPLY_TIMES),
            rounds: RoundsCache::default(),
            ranking_watches: RankingWatches::default(),
            progress_cache: ProgressCache::new(progress_cache::MAX_ENTRIES),
            newest_matches: NewestMatches::new(newest_matches::MAX_LISTS, newest_matches::MAX_AGE),
            names_with_owners: NamesWithOwners::new(bot_names::MAX_TOURNAMENTS, bot_names::MAX_AGE),
            home_pages: home::HomePages::new(2, home::MAX_AGE),
            plan_summaries: Cache::new(MAX_PLAN_SUMMARIES),
            new_bot_outlooks: Cache::new(progress_cache::MAX_ENTRIES),
            entry_outlook: EntryOutlook::default(),
            edition_watches: EditionWatches::default(),
            bundles: BundlePieces::default(),
            guides: GuideCache::default(),
            inspected: game_packages::inspected_packages(),
            pool,
            queue,
            dispatcher,
            store,
            cleaner,
            token_throttle,
            clock,
        }))
    }

    /// Reads the metrics of this coordinator.
    pub(crate) fn observer(&self, leadership: Leadership) -> Observer {
        Observer::new(Sources {
            pool: self.pool.clone(),
            metrics: Arc::clone(self.metrics()),
            leadership,
            clock: self.clock.clone(),
            lease: self.lease(),
        })
    }

    /// Starts the background tasks that read the database's clock and the suspended workers, and
    /// delete dropped tournaments and old records.
    pub(crate) fn watch_database(&self, background: &mut JoinSet<()>) {
        let cleaner = self.cleaner.clone();
        let clock = self.clock.clone();
        let suspensions = self.suspensions.clone();
        let clock_pool = self.queue.pool().clone();
        let suspensions_pool = self.queue.pool().clone();
        background.spawn(async move { cleaner.run().await });
        background.spawn(async move { clock.follow(&clock_pool).await });
        background.spawn(async move { suspensions.run(&suspensions_pool).await });
    }

    /// The games that this coordinator knows.
    pub(crate) fn games(&self) -> &Games {
        self.queue.games()
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        self.queue.metrics()
    }

    /// How long a lease lasts.
    pub(crate) fn lease(&self) -> time::Duration {
        self.queue.lease_policy().lease
    }

    /// The time of the database.
    pub(crate) fn now(&self) -> OffsetDateTime {
        self.clock.now()
    }

    /// Records a change in the audit log and commits its transaction. A subject begins with the
    /// name of its tournament; [`change`] makes the detail.
    async fn commit_change(
        &self,
        mut transaction: Transaction<'_, Postgres>,
        principal: &Principal,
        action: &str,
        subject: &str,
        detail: Option<Value>,
    ) -> Result<()> {
        tracing::info!(token = %principal.id, action, subject, "changed");
        let by = Some(principal.id);
        let detail = detail.as_ref();
        audit_log_rows::write(&mut *transaction, by, action, subject, detail, self.now()).await?;
        Ok(transaction.commit().await?)
    }

    /// The tournament of this name.
    async fn tournament(&self, name: &str) -> Result<Tournament> {
        let row = tournament_rows::find(&self.pool, name).await?;
        row.ok_or_else(|| ServiceError::missing("tournament", name))
    }

    /// The tournament of a match, and the match's identity. The match need not exist.
    async fn named_match(&self, name: &MatchName) -> Result<(Tournament, MatchId)> {
        let row = tournament_rows::find(&self.pool, &name.tournament).await?;
        let tournament = row.ok_or_else(|| ServiceError::missing("match", name))?;
        let id = MatchId { tournament: tournament.id, number: name.number };
        Ok((tournament, id))
    }
}

/// The name of a match of a tournament.
fn match_name(tournament: &Tournament, number: MatchNumber) -> MatchName {
    MatchName { tournament: tournament.name.clone(), number }
}

/// The detail of an audit log entry: the state before and after.
fn change(before: Value, after: Value) -> Value {
    Value::from_iter([("before", before), ("after", after)])
}

/// A time in messages: microseconds since 1970.
fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// A time from a message: microseconds since 1970.
fn parse_micros(micros: i64) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000)
        .map_err(|error| ServiceError::invalid_argument(error.to_string()))
}

/// A time for people.
fn format_time(time: OffsetDateTime) -> String {
    let time = time.to_offset(UtcOffset::UTC);
    let date = time.date();
    let (hour, minute, second) = time.to_hms();
    format!("{date} {hour:02}:{minute:02}:{second:02} UTC")
}
