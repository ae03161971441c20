//! The running coordinator: the database, background tasks and servers.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::state_words::match_state;
use axum::Router;
use ipnet::IpNet;
use sqlx::migrate::MigrateError;
pub use sqlx::postgres::PgConnectOptions;
use sqlx::{Error, PgPool};
use thiserror::Error as ThisError;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::access::creation::{CreateTokenError, Name, Terms};
use crate::access::stream_revocation::OpenTokens;
use crate::access::token_throttle::TokenThrottle;
use crate::access::{self, Role, Secret};
use crate::boxed_future::BoxedFuture;
use crate::database_clock::Clock;
use crate::db;
use crate::db::bots::SuspendedBot;
use crate::db::editions::Edition;
use crate::db::lots::LotState;
use crate::db::{record_objects, stalled_copies, tokens};
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

/// The oldest supported version of PostgreSQL.
const MIN_POSTGRES: i32 = 14;

/// How long a stopping coordinator waits until leases are returned, and again until reports are
/// stored.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// A `COPY` statement that waits for rows after this time belongs to a stopped coordinator.
const MAX_COPY_TIME: Duration = Duration::from_secs(30);
/// How often the leader looks for such statements.
const STALL_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The configuration of a coordinator.
#[derive(Clone, Debug)]
pub struct Config {
    /// The available games.
    pub games: Games,
    /// TLS, unless connections are plain text.
    pub tls: Option<Tls>,
    /// The rules of leasing.
    pub lease_policy: LeasePolicy,
    /// Maximum number of connections to the database. Up to three more are opened: for leasing, for
    /// the leader election, and sometimes for cleanup.
    pub connections: u32,
    /// Trusted proxies: their `X-Forwarded-For` headers are believed.
    pub proxies: Vec<IpNet>,
    /// Where records are stored, and for how long.
    pub records: Records,
}

/// Why a coordinator does not start.
#[derive(Debug, ThisError)]
pub enum StartError {
    /// The database cannot be reached.
    #[error(
        "cannot connect to the database {database}: {cause} (is it running, and are the \
        credentials right?)"
    )]
    Unreachable {
        /// The address of the database, without the password.
        database: String,
        /// The cause.
        cause: Error,
    },
    /// The database server is too old.
    #[error(
        "the database {database} runs PostgreSQL {version}; version {MIN_POSTGRES} or later is \
        required"
    )]
    Old {
        /// The address of the database, without the password.
        database: String,
        /// The version of PostgreSQL.
        version: i32,
    },
    /// The schema is newer than this program.
    #[error(
        "the tables in {database} were created by a later version of arbiter (migration \
        {migration}); install that version"
    )]
    Later {
        /// The address of the database, without the password.
        database: String,
        /// A migration that this program does not have.
        migration: i64,
    },
    /// The schema was created by a version before the first release.
    #[error(
        "the database {database} was created by a development version before 0.1 (migration \
        {migration} of another series): export the data that you need with that version, then \
        create a new database (for `arbiter up` and `arbiter demo`: move the data directory away)"
    )]
    Development {
        /// The address of the database, without the password.
        database: String,
        /// The newest migration of the schema.
        migration: i64,
    },
    /// The schema cannot be created or updated.
    #[error("cannot migrate the tables in {database}: {cause}")]
    Migrate {
        /// The address of the database, without the password.
        database: String,
        /// The cause.
        cause: MigrateError,
    },
}

/// A coordinator that is ready to serve.
#[derive(Debug)]
pub struct Coordinator {
    workers: WorkerService,
    leadership: Leadership,
    allocator: Allocator,
    batcher: ReportBatcher,
    config: Config,
    /// The listener of the web server, if there is one.
    web: Option<TcpListener>,
    /// Whether victories in tricks over HTTP count.
    tricks_mode: Mode,
    /// The address of the database, without the password.
    database: String,
}

impl Coordinator {
    /// Connects to a database and migrates it. Boxed for the same reason as [`Self::run`].
    pub fn prepare(
        options: PgConnectOptions,
        config: Config,
    ) -> BoxedFuture<Result<Self, StartError>> {
        Box::pin(Self::prepare_now(options, config))
    }

    async fn prepare_now(options: PgConnectOptions, config: Config) -> Result<Self, StartError> {
        let database = address(&options);
        // Readers get a third of the connections.
        let readers = (config.connections / 3).max(1);
        let queue_connections = (config.connections - readers).max(1);
        let pool = open(options.clone(), readers).await?;
        let unreachable = |cause| StartError::Unreachable { database: database.clone(), cause };
        let queue_pool = db::connect(options, queue_connections).await.map_err(unreachable)?;
        let clock = db::retry_startup(|| Clock::of(&queue_pool)).await.map_err(unreachable)?;
        let queue = Queue::new(queue_pool.clone(), config.games.clone(), config.lease_policy);
        let (dispatcher, allocator) = Dispatcher::new(queue.clone());
        let (reporter, batcher) = ReportSender::new(queue.clone());
        let store = config.records.store.clone();
        let batcher = batcher.with_store(store.clone());
        let cleaner = Cleaner::new(queue_pool.clone(), config.records.clone(), clock.clone());
        if store.is_none()
            && db::retry_startup(|| record_objects::any(&queue_pool)).await.unwrap_or_default()
        {
            tracing::warn!(
                "some records are in an object store, but none is configured; set --records"
            );
        }
        let service = Service::new(ServiceConfig {
            pool,
            queue,
            dispatcher,
            store,
            cleaner,
            token_throttle: TokenThrottle::new(config.proxies.clone()),
            clock,
        });
        let assignments = Arc::new(AssignmentBuilder::new(queue_pool, config.games.clone()));
        let workers = WorkerService::new(service, assignments, reporter);
        Ok(Self {
            workers,
            leadership: Leadership::default(),
            allocator,
            batcher,
            config,
            web: None,
            tricks_mode: Mode::default(),
            database,
        })
    }

    /// Adds a web server.
    #[must_use]
    pub fn with_web(self, listener: TcpListener) -> Self {
        Self { web: Some(listener), ..self }
    }

    /// Sets the mode of tricks over HTTP.
    #[must_use]
    pub fn with_tricks_mode(self, tricks_mode: Mode) -> Self {
        Self { tricks_mode, ..self }
    }

    /// Metrics and readiness, for operators.
    pub fn observer(&self) -> Observer {
        self.service().observer(self.leadership.clone())
    }

    fn service(&self) -> &Service {
        &self.workers.service
    }

    /// Whether the database has no tokens yet.
    pub async fn has_no_tokens(&self) -> Result<bool, StartError> {
        let tokens = db::retry_startup(|| tokens::list(&self.service().pool)).await;
        Ok(tokens.map_err(|cause| self.unreachable(cause))?.is_empty())
    }

    /// Whether a token is valid.
    pub async fn is_valid_token(&self, secret: &Secret) -> Result<bool, StartError> {
        let now = self.service().now();
        let token = db::retry_startup(|| access::find(&self.service().pool, secret, now)).await;
        Ok(token.map_err(|cause| self.unreachable(cause))?.is_some())
    }

    /// Creates a token with this name, to which a number is added if another token has it.
    pub async fn create_token(&self, role: Role, name: &str) -> Result<Secret, CreateTokenError> {
        let now = self.service().now();
        let terms = Terms { role, expires_at: None, by: None };
        let pool = &self.service().pool;
        Ok(access::create_audited(pool, Name::Numbered(name), terms, now).await?.secret)
    }

    fn unreachable(&self, cause: Error) -> StartError {
        StartError::Unreachable { database: self.database.clone(), cause }
    }

    /// Serves until `stop` completes, and stores all reports that were received before.
    ///
    /// It is boxed so that the servers are compiled here, and not again in each program that runs
    /// a coordinator.
    pub fn run(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> BoxedFuture<Result<(), ServeError>> {
        self.serve_boxed(listener, Box::pin(stop))
    }

    fn serve_boxed(
        self,
        listener: TcpListener,
        stop: BoxedFuture<()>,
    ) -> BoxedFuture<Result<(), ServeError>> {
        Box::pin(self.serve(listener, stop))
    }

    async fn serve(self, listener: TcpListener, stop: BoxedFuture<()>) -> Result<(), ServeError> {
        let observer = self.observer();
        let Self { workers, leadership, allocator, batcher, config, web, tricks_mode, .. } = self;
        let service = workers.service.clone();
        let mut background = JoinSet::new();
        let (stop_allocator, allocator_stopped) = oneshot::channel::<()>();
        let metrics = Arc::clone(service.metrics());
        let on_failure = move |error| {
            metrics.record_failure(BackgroundTask::Allocator);
            tracing::warn!(%error, "cannot lease; retrying");
        };
        let allocator_task =
            tokio::spawn(allocator.run(async { drop(allocator_stopped.await) }, on_failure));
        let election = Election::new(service.queue.pool().clone(), leadership);
        let leader_workers = workers.clone();
        background.spawn(
            election.run(move |connected_since| lead(leader_workers.clone(), connected_since)),
        );
        service.watch_database(&mut background);
        let open_tokens = OpenTokens::default();
        let checked_tokens = open_tokens.clone();
        let pool = service.queue.pool().clone();
        background.spawn(async move { checked_tokens.run(&pool).await });
        let (stop_batcher, batcher_stopped) = oneshot::channel::<()>();
        let batcher_task = tokio::spawn(batcher.run(async { drop(batcher_stopped.await) }));
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
        let result = server.run(listener, stop).await;
        changes.stop();
        pages.join_all().await;
        background.shutdown().await;
        // Unclaimed leases must be returned: they would expire and count as faults.
        drop(stop_allocator);
        drop(tokio::time::timeout(SHUTDOWN_TIMEOUT, allocator_task).await);
        // Open connections still hold report senders, so the batcher must be stopped explicitly.
        drop(stop_batcher);
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, batcher_task).await.is_err() {
            tracing::warn!("some reports were not stored; their workers will send them again");
        }
        result
    }
}

/// The pages of tricks over HTTP.
fn tricks_pages(service: &Service, mode: Mode) -> Router {
    let pool = service.pool.clone();
    let clock = service.clock.clone();
    tricks_http::router(pool, clock, service.token_throttle.clone(), mode)
}

/// The work of the leader: maintenance, opening editions, sampling their progress, and audits.
fn lead(workers: WorkerService, connected_since: Instant) -> BoxedFuture<()> {
    Box::pin(async move {
        let service = &workers.service;
        let mut auditor = workers.auditor();
        let maintenance = Maintenance::new(service.queue.clone(), service.clock.clone());
        let opener = EditionOpener::new(service.queue.clone(), service.clock.clone());
        tokio::join!(
            maintenance.run(connected_since, |round| publish_maintenance(round, service)),
            opener.run(|outcome| publish_opening(outcome, service)),
            service.sample_progress(),
            end_stalled_copies(&service.pool),
            auditor.run(|round| publish_audit(round, service)),
        );
    })
}

/// Ends sessions of coordinators that stopped within `COPY`, so that nothing waits for their locks
/// for long.
async fn end_stalled_copies(pool: &PgPool) {
    loop {
        match stalled_copies::end(pool, MAX_COPY_TIME).await {
            Ok(0) => {}
            Ok(ended) => tracing::warn!(ended, "ended the sessions of stopped coordinators"),
            Err(error) => tracing::debug!(%error, "cannot look for stopped coordinators"),
        }
        sleep(STALL_CHECK_INTERVAL).await;
    }
}

/// Logs the result of an audit round, and notifies watchers.
fn publish_audit(round: Result<AuditRound, Error>, service: &Service) {
    let round = match round {
        Ok(round) => round,
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Auditor);
            tracing::warn!(%error, "cannot audit matches; retrying");
            return;
        }
    };
    for (id, worker, reason) in &round.differences {
        tracing::error!(%id, %worker, reason, "a report and its record differ");
    }
    for SuspendedWorker { worker, reason, .. } in &round.suspended {
        service.suspensions.add(*worker, reason);
    }
    if !round.suspended.is_empty() {
        service.changes.notify();
    }
}

/// Logs the result of a maintenance round, and notifies watchers.
fn publish_maintenance(round: Result<Round, MaintenanceError>, service: &Service) {
    let round = match round {
        Ok(round) => round,
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Maintenance);
            tracing::warn!("{error}");
            return;
        }
    };
    for fault in &round.expired.failed {
        let state = match_state(fault.state.as_str());
        tracing::warn!(lease = %fault.lease, state, "a lease expired");
        if fault.state == LotState::Aside {
            tracing::error!(lot = %fault.lease.lot, "set aside after too many faults");
        }
    }
    for SuspendedBot { tournament_name, name, reason, .. } in &round.suspended {
        tracing::warn!(tournament = tournament_name, bot = name, reason, "bot suspended");
    }
    service.metrics().editions_completed.inc_by(round.complete.len() as u64);
    for edition in &round.complete {
        tracing::info!(%edition, "edition complete");
    }
    if round != Round::default() {
        service.changes.notify();
        service.dispatcher.news();
    }
}

/// Logs that an edition was opened, or why it cannot be opened, and notifies watchers.
fn publish_opening(outcome: Result<OpenOutcome, OpenError>, service: &Service) {
    match outcome {
        Ok(OpenOutcome::Opened(edition)) => {
            let Edition { id, number, matches, .. } = edition;
            service.metrics().editions_opened.inc();
            tracing::info!(edition = %id, number, matches, "edition opened after a change");
            service.changes.notify();
            service.dispatcher.news();
        }
        Ok(OpenOutcome::Failed(tournament, error)) => {
            service.metrics().editions_failed.inc();
            tracing::error!(tournament, %error, "cannot open an edition");
            service.changes.notify();
        }
        Err(error) => {
            service.metrics().record_failure(BackgroundTask::Opener);
            tracing::warn!(%error, "cannot open an edition; retrying");
        }
    }
}

/// Parses the URL of a database.
pub fn parse_database_url(url: &str) -> Result<PgConnectOptions, UrlError> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
        return Err(UrlError("its scheme is not postgres".to_owned()));
    }
    url.parse().map_err(|error: Error| UrlError(error.to_string()))
}

/// Why a text is not the URL of a database.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("invalid database URL: {0}; write postgres://USER@HOST/NAME")]
pub struct UrlError(String);

/// Connects to a database, checks its version, and migrates it.
///
/// # Errors
/// If it is not reachable, too old, or has the schema of a later version.
pub async fn open(options: PgConnectOptions, connections: u32) -> Result<PgPool, StartError> {
    let database = address(&options);
    let unreachable = |cause| StartError::Unreachable { database: database.clone(), cause };
    let pool = db::connect(options, connections).await.map_err(unreachable)?;
    let version = db::retry_startup(|| db::server_version(&pool)).await.map_err(unreachable)?;
    if version < MIN_POSTGRES {
        return Err(StartError::Old { database, version });
    }
    let migration = db::retry_startup(|| async {
        match db::migrate(&pool).await {
            // Migrations that succeeded are stored; the next attempt continues after them.
            Err(MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _))
                if db::is_transient(&error) || db::is_unavailable(&error) =>
            {
                Err(error)
            }
            result => Ok(result),
        }
    });
    let result = migration.await.map_err(unreachable)?;
    if matches!(result, Err(MigrateError::VersionMissing(_) | MigrateError::VersionMismatch(_)))
        && let Some(migration) =
            db::retry_startup(|| db::development_migration(&pool)).await.map_err(unreachable)?
    {
        return Err(StartError::Development { database, migration });
    }
    match result {
        Ok(()) => Ok(pool),
        Err(MigrateError::VersionMissing(migration))
            if db::retry_startup(|| db::is_compatible(&pool)).await.unwrap_or_default() =>
        {
            tracing::warn!(migration, "the schema is that of a later, compatible version");
            Ok(pool)
        }
        Err(MigrateError::VersionMissing(migration) | MigrateError::VersionMismatch(migration)) => {
            Err(StartError::Later { database, migration })
        }
        Err(cause) => Err(StartError::Migrate { database, cause }),
    }
}

/// The address of a database, without the password.
fn address(options: &PgConnectOptions) -> String {
    let name = options.get_database().unwrap_or("postgres");
    match options.get_socket() {
        Some(socket) => format!("{name} at {}", socket.display()),
        None => format!("{name} at {}:{}", options.get_host(), options.get_port()),
    }
}
