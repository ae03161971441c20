//! The running coordinator: the database, what goes on beside it, and the server.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use axum::Router;
use ipnet::IpNet;
use sqlx::migrate::MigrateError;
pub use sqlx::postgres::PgConnectOptions;
use sqlx::{Error, PgPool};
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::access::open_tokens::OpenTokens;
use crate::access::token_throttle::TokenThrottle;
use crate::access::{self, Role, Secret};
use crate::database_clock::Clock;
use crate::db;
use crate::db::bots::StoodDown;
use crate::db::editions::Edition;
use crate::db::lots::LotState;
use crate::db::{record_objects, tokens};
use crate::leader_election::{Election, Leadership};
use crate::maintenance::{Maintenance, MaintenanceError, Round};
use crate::match_audit::AuditRound;
use crate::metrics::{BackgroundTask, Observer};
use crate::queue::{Allocator, Dispatcher, LeasePolicy, Queue, ReportBatcher, ReportSender};
use crate::retention::Cleaner;
pub use crate::retention::Records;
use crate::rpc::{self, ServeError, Tls};
use crate::service::{Service, ServiceConfig, WorkerService};
use crate::tournament::OpenError;
use crate::tournament::auto_edition::{EditionOpener, OpenOutcome};
use crate::tournament::lot_assignment::AssignmentBuilder;
use crate::tricks_http::{self, Mode};
use crate::web;
use crate::worker_suspension::SuspendedWorker;

/// The oldest version of Postgres that our statements are tried with.
const OLDEST_POSTGRES: i32 = 14;

/// How long a coordinator that stops waits for its last reports to be stored.
const LAST_REPORTS: Duration = Duration::from_secs(10);

/// How a coordinator is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// The games that are played.
    pub games: Games,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
    /// The rules of leasing.
    pub lease_policy: LeasePolicy,
    /// Connections to the database at most, beside three of its own: for leasing, for standing for
    /// leader, and now and then for clearing away.
    pub connections: u32,
    /// Who says in `X-Forwarded-For` for whom it speaks, and is believed.
    pub proxies: Vec<IpNet>,
    /// What becomes of records.
    pub records: Records,
}

/// Why a coordinator does not start.
#[derive(Debug, ThisError)]
pub enum StartError {
    /// The database cannot be reached.
    #[error("cannot reach the database {database}: {cause}; is it running, and may we enter it?")]
    Unreachable {
        /// Where it should be, without its password.
        database: String,
        /// Why.
        cause: Error,
    },
    /// The database is too old.
    #[error(
        "the database {database} runs PostgreSQL {version}; this needs {OLDEST_POSTGRES} or later"
    )]
    Old {
        /// Where it is, without its password.
        database: String,
        /// Its version.
        version: i32,
    },
    /// Its tables are those of a later version of ours.
    #[error(
        "the tables in {database} were made by a later version of arbiter (migration {migration}); \
        install that version"
    )]
    Later {
        /// Where it is, without its password.
        database: String,
        /// A migration that is not known here.
        migration: i64,
    },
    /// Its tables are those of a version from before the first release.
    #[error(
        "the database {database} was made by a development version before 0.1 (migration \
        {migration} of another series): export what you need with that version, then create a new \
        database (for `arbiter up` and `arbiter demo`: move the data directory away)"
    )]
    Development {
        /// Where it is, without its password.
        database: String,
        /// Its newest migration.
        migration: i64,
    },
    /// Its tables cannot be made or brought up to date.
    #[error("cannot prepare the tables in {database}: {cause}")]
    Migrate {
        /// Where it is, without its password.
        database: String,
        /// Why.
        cause: MigrateError,
    },
}

/// A coordinator that is ready to serve.
#[derive(Debug)]
pub struct Coordinator {
    workers: WorkerService,
    leadership: Leadership,
    allocator: Allocator,
    collector: ReportBatcher,
    config: Config,
    /// Where pages are served, if they are.
    web: Option<TcpListener>,
    /// Whether victories in tricks over HTTP count.
    tricks_mode: Mode,
    /// Where the database is, for people.
    database: String,
}

impl Coordinator {
    /// Opens a database and brings its tables up to date.
    pub async fn prepare(options: PgConnectOptions, config: Config) -> Result<Self, StartError> {
        let database = place(&options);
        // Readers have a third of the connections.
        let readers = (config.connections / 3).max(1);
        let work = (config.connections - readers).max(1);
        let pool = open(options.clone(), readers).await?;
        let unreachable = |cause| StartError::Unreachable { database: database.clone(), cause };
        let work = db::connect(options, work).await.map_err(unreachable)?;
        let clock = db::patiently(|| Clock::of(&work)).await.map_err(unreachable)?;
        let queue = Queue::new(work.clone(), config.games.clone(), config.lease_policy);
        let (dispatcher, allocator) = Dispatcher::new(queue.clone());
        let (reporter, collector) = ReportSender::new(queue.clone());
        let store = config.records.store.clone();
        let collector = collector.with_store(store.clone());
        let clearing = Cleaner::new(work.clone(), config.records.clone(), clock.clone());
        if store.is_none() && db::patiently(|| record_objects::any(&work)).await.unwrap_or_default()
        {
            tracing::warn!("some records are in an object store, and --records does not name it");
        }
        let parts = ServiceConfig {
            pool,
            queue,
            dispatcher,
            store,
            clearing,
            guard: TokenThrottle::new(config.proxies.clone()),
            clock,
            lease: config.lease_policy.lease,
        };
        let service = Service::new(parts);
        let assignments = Arc::new(AssignmentBuilder::new(work, config.games.clone()));
        let workers = WorkerService::new(service, assignments, reporter);
        let (web, tricks_mode) = (None, Mode::default());
        let leadership = Leadership::default();
        Ok(Self { workers, leadership, allocator, collector, config, web, tricks_mode, database })
    }

    /// The same, but that it serves web pages too.
    #[must_use]
    pub fn with_web(self, listener: TcpListener) -> Self {
        Self { web: Some(listener), ..self }
    }

    /// The same with this mode of tricks over HTTP.
    #[must_use]
    pub fn with_tricks_mode(self, tricks_mode: Mode) -> Self {
        Self { tricks_mode, ..self }
    }

    /// Reads its figures, for operators.
    pub fn observer(&self) -> Observer {
        self.service().observer(self.leadership.clone())
    }

    fn service(&self) -> &Service {
        &self.workers.service
    }

    /// Whether nobody has been let in yet.
    pub async fn has_no_tokens(&self) -> Result<bool, StartError> {
        let tokens = db::patiently(|| tokens::list(&self.service().pool)).await;
        Ok(tokens.map_err(|cause| self.failed(cause))?.is_empty())
    }

    /// Whether a token lets somebody in.
    pub async fn knows(&self, secret: &Secret) -> Result<bool, StartError> {
        let now = self.service().now();
        let found = db::patiently(|| access::find(&self.service().pool, secret, now)).await;
        Ok(found.map_err(|cause| self.failed(cause))?.is_some())
    }

    /// Makes a token.
    pub async fn make_token(&self, role: Role, name: &str) -> Result<Secret, StartError> {
        let now = self.service().now();
        let made = access::create_noted(&self.service().pool, role, name, None, now).await;
        made.map(|(_, secret)| secret).map_err(|cause| self.failed(cause))
    }

    fn failed(&self, cause: Error) -> StartError {
        StartError::Unreachable { database: self.database.clone(), cause }
    }

    /// Serves until `stop`. Reports that came in until then are stored.
    pub async fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let observer = self.observer();
        let Self { workers, leadership, allocator, collector, config, web, tricks_mode, .. } = self;
        let service = workers.service.clone();
        let mut background = JoinSet::new();
        let (leaves, left) = oneshot::channel::<()>();
        let metrics = Arc::clone(service.metrics());
        let failed = move |error| {
            metrics.record_failure(BackgroundTask::Allocator);
            tracing::warn!(%error, "cannot lease; trying again");
        };
        let allocating = tokio::spawn(allocator.run(async { drop(left.await) }, failed));
        let election = Election::new(service.queue.pool().clone(), leadership);
        let led = workers.clone();
        background.spawn(election.run(move |awake| lead(led.clone(), awake)));
        service.watch_database(&mut background);
        let open_tokens = OpenTokens::default();
        let (looking, pool) = (open_tokens.clone(), service.queue.pool().clone());
        background.spawn(async move { looking.run(&pool).await });
        let (stops, stopped) = oneshot::channel::<()>();
        let collecting = tokio::spawn(collector.run(async { drop(stopped.await) }));
        let changes = service.changes.clone();
        let mut pages = JoinSet::new();
        if let Some(listener) = web {
            let tricks_http = tricks_pages(&service, tricks_mode);
            pages.spawn(async move {
                if let Err(error) = web::serve(service, observer, tricks_http, listener).await {
                    tracing::error!(%error, "the web server failed");
                }
            });
        }
        let server = rpc::Server { workers, open_tokens, tls: config.tls };
        let served = server.run(listener, stop).await;
        changes.stop();
        pages.join_all().await;
        background.shutdown().await;
        // A lease that nobody took would run out, and be taken for a fault.
        drop(leaves);
        drop(tokio::time::timeout(LAST_REPORTS, allocating).await);
        // Connections that are open still hold reporters, so they would not end by themselves.
        drop(stops);
        if tokio::time::timeout(LAST_REPORTS, collecting).await.is_err() {
            tracing::warn!("some reports were not stored; their workers will repeat them");
        }
        served
    }
}

/// The pages of tricks over HTTP.
fn tricks_pages(service: &Service, mode: Mode) -> Router {
    let (pool, clock) = (service.pool.clone(), service.clock.clone());
    tricks_http::router(pool, clock, service.guard.clone(), mode)
}

/// What the leader does: upkeep, opening editions, taking note of how fast they are played, looking
/// at what workers report a second time.
async fn lead(workers: WorkerService, awake: Instant) {
    let service = &workers.service;
    let mut auditor = workers.auditor();
    let upkeep = Maintenance::new(service.queue.clone(), service.clock.clone());
    let opener = EditionOpener::new(service.queue.clone(), service.clock.clone());
    tokio::join!(
        upkeep.run(awake, |round| tell(round, service)),
        opener.run(|outcome| tell_opened(outcome, service)),
        service.sample_progress(),
        auditor.run(|round| tell_audited(round, service)),
    );
}

/// Says what a round of audits found, and lets those know who wait for it.
fn tell_audited(round: Result<AuditRound, Error>, service: &Service) {
    let round = match round {
        Ok(round) => round,
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Auditor);
            tracing::warn!(%error, "cannot recount; trying again");
            return;
        }
    };
    for (id, worker, reason) in &round.differences {
        tracing::error!(%id, %worker, reason, "a worker reported what its record does not give");
    }
    for SuspendedWorker { worker, reason, .. } in &round.suspended {
        service.suspensions.add(*worker, reason);
    }
    if !round.suspended.is_empty() {
        service.changes.notify();
    }
}

/// Says what a round of upkeep did, and lets those know who wait for it.
fn tell(round: Result<Round, MaintenanceError>, service: &Service) {
    let round = match round {
        Ok(round) => round,
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Maintenance);
            tracing::warn!("{error}");
            return;
        }
    };
    for failed in &round.expired.failed {
        let state = failed.state.as_str();
        tracing::warn!(lease = %failed.lease, state, "a lease ran out");
        if failed.state == LotState::Aside {
            tracing::error!(lot = %failed.lease.lot, "set aside after too many faults");
        }
    }
    for StoodDown { tournament_name, name, reason, .. } in &round.stood_down {
        tracing::warn!(tournament = tournament_name, bot = name, reason, "stood down");
    }
    service.metrics().editions_completed.inc_by(round.complete.len() as u64);
    for edition in &round.complete {
        tracing::info!(%edition, "complete: its leaderboard is the official one now");
    }
    if round != Round::default() {
        service.changes.notify();
        service.dispatcher.news();
    }
}

/// Says what became of a tournament that changed, and lets those know who wait for it.
fn tell_opened(outcome: Result<OpenOutcome, OpenError>, service: &Service) {
    match outcome {
        Ok(OpenOutcome::Opened(edition)) => {
            let Edition { id, number, matches, .. } = edition;
            service.metrics().editions_opened.inc();
            tracing::info!(edition = %id, number, matches, "opened, because something changed");
            service.changes.notify();
            service.dispatcher.news();
        }
        Ok(OpenOutcome::Failed(tournament, error)) => {
            service.metrics().editions_failed.inc();
            tracing::error!(tournament, %error, "no edition can be opened");
            service.changes.notify();
        }
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Opener);
            tracing::warn!(%error, "cannot open an edition; trying again");
        }
    }
}

/// Reads the address of a database.
pub fn database(url: &str) -> Result<PgConnectOptions, UrlError> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(UrlError("it is none of PostgreSQL".to_owned()));
    }
    url.parse().map_err(|error: Error| UrlError(error.to_string()))
}

/// A text that is no address of a database.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("the database's address cannot be read: {0}; write postgres://USER@HOST/NAME")]
pub struct UrlError(String);

/// Opens a database, looks whether it fits, and brings its tables up to date.
///
/// # Errors
/// If it cannot be reached, is too old, or has tables of a later version.
pub async fn open(options: PgConnectOptions, connections: u32) -> Result<PgPool, StartError> {
    let database = place(&options);
    let unreachable = |cause| StartError::Unreachable { database: database.clone(), cause };
    let pool = db::connect(options, connections).await.map_err(unreachable)?;
    let version = db::patiently(|| db::server_version(&pool)).await.map_err(unreachable)?;
    if version < OLDEST_POSTGRES {
        return Err(StartError::Old { database, version });
    }
    let migrated = db::patiently(|| async {
        match db::migrate(&pool).await {
            // What was done is there, and what was not is done the next time.
            Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))
                if db::is_passing(&error) || db::is_away(&error) =>
            {
                Err(error)
            }
            migrated => Ok(migrated),
        }
    });
    let migrated = migrated.await.map_err(unreachable)?;
    if matches!(migrated, Err(MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_)))
        && let Some(migration) =
            db::patiently(|| db::development_migration(&pool)).await.map_err(unreachable)?
    {
        return Err(StartError::Development { database, migration });
    }
    match migrated {
        Ok(()) => Ok(pool),
        Err(MigrateError::VersionMissing(migration))
            if db::patiently(|| db::can_live_with_it(&pool)).await.unwrap_or_default() =>
        {
            tracing::warn!(
                migration,
                "the tables are those of a later version; serving all the same"
            );
            Ok(pool)
        }
        Err(MigrateError::VersionMissing(migration) | MigrateError::VersionMismatch(migration)) => {
            Err(StartError::Later { database, migration })
        }
        Err(cause) => Err(StartError::Migrate { database, cause }),
    }
}

/// Where a database is, for people: without its password.
fn place(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or("postgres");
    match options.get_socket() {
        Some(socket) => format!("{name} at {}", socket.display()),
        None => format!("{name} at {}:{}", options.get_host(), options.get_port()),
    }
}
