//! The database: connections, and one module for each table.
//!
//! Each statement is next to the type of its rows. Postgres checks statements only when they run,
//! so each of them runs in a test. Functions with one statement take any executor, so they compose
//! in a transaction. The queue owns the transactions. Statements that compare times use
//! `database_clock()`. Times that are only stored are arguments.
//!
//! Sessions use one generic plan for each statement (`plan_cache_mode`), because planning a
//! statement of the queue takes longer than running it. Limits are literals in the statements: a
//! generic plan for a parameter would expect a tenth of the table.

use std::io::{self, ErrorKind};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{
    Connection as _, Error, PgConnection, PgExecutor, PgPool, PgTransaction, Result, Row as _,
};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout};

pub use error_class::{
    has_zero_byte, is_duplicate, is_invalid_data, is_locked, is_transient, is_unavailable,
};
use keepalive_proxy::KeepAliveProxy;

pub mod absences;
pub mod announcements;
pub mod audit_log;
mod binary_copy;
pub mod bot_list;
pub mod bot_state;
pub mod bots;
pub mod claimable;
pub mod deleted_tournaments;
pub mod edition_triggers;
pub mod editions;
pub mod entrants;
mod error_class;
pub mod estimate_inputs;
pub mod faults;
pub mod forfeit_evidence;
pub mod invalidated_matches;
mod keepalive_proxy;
pub mod lease_details;
pub mod leases;
pub mod lots;
pub mod match_audits;
pub mod matches;
pub mod packages;
pub mod partitions;
pub mod plan_histories;
pub mod plan_ranks;
pub mod played_matches;
pub mod progress_samples;
pub mod record_objects;
pub mod records;
pub mod results;
pub mod shadows;
pub mod stalled_copies;
pub mod standings;
pub mod stats;
pub mod tokens;
pub mod tournaments;
pub mod trace_contexts;
pub mod trials;
pub mod tricks_http;
pub mod versions;
pub mod worker_runtimes;
pub mod worker_stats;
pub mod worker_suspensions;
pub mod workers;

/// The migrations.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// The settings of every session.
///
/// A generic plan must not depend on the current size of a table: a sequential scan is best for a
/// few rows and worst for millions. All our statements find rows by key, so the settings disable
/// all other scans and joins. An open transaction blocks vacuum on every table and keeps its locks.
/// So the server soon ends an idle one, for example after a network failure.
const SESSION: [(&str, &str); 14] = [
    ("application_name", "arbiter"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    // A parallel plan takes milliseconds to start, and never ends early.
    ("max_parallel_workers_per_gather", "0"),
    ("jit", "off"),
    ("statement_timeout", "120s"),
    // A statement that waits for a lock holds locks itself, so its wait is short.
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("tcp_keepalives_idle", "5s"),
    ("tcp_keepalives_interval", "5s"),
    ("tcp_user_timeout", "10s"),
];

/// How long to wait for a server that is starting, and for a free connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause between two attempts to connect.
const RETRY_DELAY: Duration = Duration::from_millis(200);

/// Creates a pool of at most this many connections. Each connection opens at its first use. Waits
/// for a server that is starting. The connections fail within seconds after a network failure.
pub async fn connect(options: PgConnectOptions, connections: u32) -> Result<PgPool> {
    let options = options.options(SESSION);
    // This reports a wrong address at once.
    repeat_while(is_starting, || try_once(&options)).await?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(CONNECT_TIMEOUT)
        .after_release(|connection, _| Box::pin(is_clean(connection)));
    open(pool, options)
}

/// Runs a step of start-up. Retries while the server restarts.
pub async fn retry_startup<T, F>(step: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    repeat_while(|error| is_transient(error) || is_unavailable(error), step).await
}

/// Retries work while it fails with a transient error, at most for [`CONNECT_TIMEOUT`].
async fn repeat_while<T, F>(
    is_transient: impl Fn(&Error) -> bool,
    work: impl Fn() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + CONNECT_TIMEOUT;
    let mut warned = false;
    loop {
        match work().await {
            Err(error) if is_transient(&error) && Instant::now() < deadline => {
                if !warned {
                    let seconds = CONNECT_TIMEOUT.as_secs();
                    tracing::warn!(%error, seconds, "the database does not answer; retrying");
                    warned = true;
                }
                tokio::time::sleep(RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}

/// A pool that connects lazily. Connections to another host go through the keep-alive proxy.
fn open(pool: PgPoolOptions, options: PgConnectOptions) -> Result<PgPool> {
    let host = options.get_host();
    let port = options.get_port();
    if options.get_socket().is_some() || host.starts_with('/') {
        return Ok(pool.connect_lazy_with(options));
    }
    let proxy = KeepAliveProxy::open(host, port)?;
    let pool = pool.connect_lazy_with(options.socket(proxy.directory()));
    tokio::spawn(proxy.run(pool.close_event()));
    Ok(pool)
}

/// Opens a connection and closes it again.
async fn try_once(options: &PgConnectOptions) -> Result<()> {
    let timed_out =
        |_| Error::Io(io::Error::new(ErrorKind::TimedOut, "the database did not respond"));
    let connection = timeout(CONNECT_TIMEOUT, PgConnection::connect_with(options)).await;
    connection.map_err(timed_out)??.close().await
}

/// Whether the server may accept connections soon: it is starting, stopping or full.
fn is_starting(error: &Error) -> bool {
    match error {
        Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        ),
        // sqlx reports a protocol error when the server stops before it answers the TLS request.
        Error::Protocol(_) => true,
        // The server is starting or stopping, or has no connection left.
        Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P") || code == "53300")
        }
        _ => false,
    }
}

/// Whether a connection is clean and can be used again.
///
/// A future that is dropped in the middle of a statement may leave its connection in a transaction.
/// It may also leave an unread response, which the next statement would read as its own response.
/// sqlx 0.9 does not clean up after an abandoned `BEGIN` or `COPY`. In a transaction that is still
/// open the two times of the query differ. The response of another statement has no such row.
async fn is_clean(connection: &mut PgConnection) -> Result<bool> {
    let query = sqlx::raw_sql("SELECT now() = statement_timestamp()");
    query.fetch_one(connection).await?.try_get(0)
}

/// Begins a read-only transaction that sees the database as it is at its first statement.
pub async fn snapshot(pool: &PgPool) -> Result<PgTransaction<'static>> {
    pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await
}

/// The time of the database's clock.
pub async fn now(db: impl PgExecutor<'_>) -> Result<OffsetDateTime> {
    sqlx::query_scalar("SELECT database_clock()").fetch_one(db).await
}

/// Removes the time limit of a transaction's statements: a plan may have millions of rows. The
/// transaction may pause between statements for at most [`MAX_PAUSE`]. The transaction of a stopped
/// coordinator still ends: the leader ends it if it stalls within `COPY` ([`stalled_copies`]), and
/// a new leader ends its long statements ([`end_openings`]).
pub async fn lift_time_limits(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "
        SELECT set_config('statement_timeout', '0', true),
            set_config('lock_timeout', '60s', true),
            set_config('idle_in_transaction_session_timeout', $1, true)";
    sqlx::query(statement).bind(MAX_PAUSE).execute(db).await.map(drop)
}

/// How long a transaction without a time limit may pause between two statements.
pub const MAX_PAUSE: &str = "15s";
/// The same while an edition is planned. Checking a plan of 5·10⁷ matches takes ten seconds.
pub const MAX_PLANNING_PAUSE: &str = "120s";

/// Limits how long a transaction may pause between its statements.
pub async fn limit_pause(db: impl PgExecutor<'_>, pause: &str) -> Result<()> {
    let statement = "SELECT set_config('idle_in_transaction_session_timeout', $1, true)";
    sqlx::query(statement).bind(pause).execute(db).await.map(drop)
}

/// The advisory lock of transactions in which the leader opens editions. Several transactions may
/// share it.
const OPENING_LOCK: i64 = 0x0061_7262_6f70_656e;

/// Marks a transaction as one in which the leader opens an edition.
pub async fn mark_opening(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock_shared($1)";
    sqlx::query(statement).bind(OPENING_LOCK).execute(db).await.map(drop)
}

/// Ends all transactions in which a former leader opens editions, and returns their number. A
/// former leader may be stopped or disconnected while other transactions wait for its locks.
pub async fn end_openings(db: impl PgExecutor<'_>) -> Result<i64> {
    let statement = "
        SELECT count(pg_terminate_backend(pid)) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1
          AND (classid::bigint << 32 | objid::bigint) = $1
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND pid <> pg_backend_pid()";
    sqlx::query_scalar(statement).bind(OPENING_LOCK).fetch_one(db).await
}

/// Limits how long a session may be idle.
pub async fn limit_idle_time(db: impl PgExecutor<'_>, timeout: Duration) -> Result<()> {
    let statement = "SELECT set_config('idle_session_timeout', $1, false)";
    sqlx::query(statement).bind(format!("{}ms", timeout.as_millis())).execute(db).await.map(drop)
}

/// The advisory lock of the leader among the coordinators of a database.
const LEADER_LOCK: i64 = 0x0061_7262_6974_6572;

/// Tries to take the leader's lock until the session ends, and returns whether the session has it.
/// Call it only until it succeeds.
pub async fn try_lock_leadership(db: impl PgExecutor<'_>) -> Result<bool> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LEADER_LOCK).fetch_one(db).await
}

/// Runs the migrations, without a time limit. Several coordinators may call this at once: one of
/// them migrates, and the others wait.
///
/// # Errors
/// If a newer version created the database, or a migration fails.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    let options = PgConnectOptions::clone(&pool.connect_options());
    let options = options.options([("statement_timeout", "0"), ("lock_timeout", "0")]);
    let migration_pool = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let result = MIGRATIONS.run(&migration_pool).await;
    migration_pool.close().await;
    result
}

/// Whether this program can use the tables of a later version. During an upgrade coordinators of
/// both versions run.
pub async fn is_compatible(pool: &PgPool) -> Result<bool> {
    let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
    let statement = "SELECT oldest <= $1 FROM compatibility";
    sqlx::query_scalar(statement).bind(newest).fetch_one(pool).await
}

/// The newest migration of a database that a version before the first release created. Such a
/// database has another first migration. `None` for other databases.
pub async fn development_migration(pool: &PgPool) -> Result<Option<i64>> {
    let baseline = MIGRATIONS.iter().find(|migration| migration.version == 1);
    let statement = "
        SELECT max(version) FROM _sqlx_migrations WHERE EXISTS (
            SELECT FROM _sqlx_migrations WHERE version = 1 AND checksum <> $1)";
    let checksum = baseline.map(|migration| &*migration.checksum);
    sqlx::query_scalar(statement).bind(checksum).fetch_one(pool).await
}

/// Prepares the planner for a large join in this transaction: current row counts, and no nested
/// loops.
pub async fn prepare_large_join(connection: &mut PgConnection) -> Result<()> {
    let settings = "
        SET LOCAL plan_cache_mode = force_custom_plan;
        SET LOCAL enable_hashjoin = on;
        SET LOCAL enable_nestloop = off;
        SET LOCAL max_parallel_workers_per_gather = 2;
        SET LOCAL work_mem = '64MB'";
    sqlx::raw_sql(settings).execute(connection).await.map(drop)
}

/// The major version of the server.
pub async fn server_version(pool: &PgPool) -> Result<i32> {
    let statement = "SELECT current_setting('server_version_num')::int / 10000";
    sqlx::query_scalar(statement).fetch_one(pool).await
}
