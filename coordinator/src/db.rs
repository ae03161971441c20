//! The database: one module a table, and how to reach it.
//!
//! Statements stand beside the types they fill; they are checked when they run, and each of them
//! runs in a test. Functions of one statement take any executor, so that they compose in a
//! transaction; the queue owns the transactions. What decides by the time asks `database_clock()`;
//! times that are only noted are arguments.
//!
//! Sessions keep one plan for each statement (`plan_cache_mode`), because planning one of the
//! queue's takes longer than running it. This is why limits are written out in statements: a plan
//! for any limit would expect a tenth of the table.

use std::io::{self, ErrorKind};
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{
    Connection as _, Error, PgConnection, PgExecutor, PgPool, PgTransaction, Result, Row as _,
};
use time::OffsetDateTime;
use tokio::time::{Instant, timeout};

pub use errors::{is_away, is_duplicate, is_held, is_passing, is_refused, is_unwritable};
use keepalive_proxy::Relay;

pub mod active_leases;
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
mod errors;
pub mod estimates;
pub mod evidence;
pub mod faults;
pub mod invalidated_matches;
mod keepalive_proxy;
pub mod leases;
pub mod lots;
pub mod match_audits;
pub mod matches;
pub mod partitions;
pub mod played_matches;
pub mod progress_samples;
pub mod record_objects;
pub mod records;
pub mod result_reuse;
pub mod results;
pub mod shadows;
pub mod standings;
pub mod stats;
pub mod suspensions;
pub mod tokens;
pub mod tournaments;
pub mod trace_contexts;
pub mod trials;
pub mod tricks_http;
pub mod versions;
pub mod worker_stats;
pub mod workers;

/// The tables, step by step.
static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// What every session is told.
///
/// A plan that is kept must not be one for the table as it happened to be: what is best for a few
/// rows, reading all of them, is the worst for the millions that follow. All our statements find
/// rows by their keys, so the planner is talked out of everything else. And a transaction that
/// nobody ends holds back the cleaning of every table, and has locked what others wait for; so it
/// is ended, soon, whether its coordinator was stopped or the network to it was cut.
const SESSION: [(&str, &str); 12] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
    ("statement_timeout", "120s"),
    // What waits for a lock holds locks itself: others must not wait for it for long.
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("tcp_keepalives_idle", "5s"),
    ("tcp_keepalives_interval", "5s"),
    ("tcp_user_timeout", "10s"),
];

/// How long to wait for a server that is being started, and for a free connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long to wait between two attempts to reach it.
const REST: Duration = Duration::from_millis(200);

/// Opens so many connections to a database, each when it is first needed. A server that is just
/// being started is waited for; later they notice within seconds if the network to it is cut.
pub async fn connect(options: PgConnectOptions, connections: u32) -> Result<PgPool> {
    let options = options.options(SESSION);
    // That an address leads nowhere is said at once.
    repeat_while(is_starting, || try_once(&options)).await?;
    let pool = PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .after_release(|connection, _| Box::pin(is_at_rest(connection)));
    open(pool, options)
}

/// Does something that a process needs before it can begin; a server that is restarted meanwhile is
/// waited for.
pub async fn patiently<T, F>(work: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    repeat_while(|error| is_passing(error) || is_away(error), work).await
}

/// Repeats what fails for such a cause, for as long as a server needs to start.
async fn repeat_while<T, F>(passes: impl Fn(&Error) -> bool, work: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    let mut told = false;
    loop {
        match work().await {
            Err(error) if passes(&error) && Instant::now() < deadline => {
                if !told {
                    let seconds = PATIENCE.as_secs();
                    tracing::warn!(%error, seconds, "the database does not answer; trying on");
                    told = true;
                }
                tokio::time::sleep(REST).await;
            }
            done => return done,
        }
    }
}

/// A pool whose connections are made later; those to another host through a relay.
fn open(pool: PgPoolOptions, options: PgConnectOptions) -> Result<PgPool> {
    let (host, port) = (options.get_host(), options.get_port());
    if options.get_socket().is_some() || host.starts_with('/') {
        return Ok(pool.connect_lazy_with(options));
    }
    let relay = Relay::open(host, port)?;
    let pool = pool.connect_lazy_with(options.socket(relay.directory()));
    tokio::spawn(relay.run(pool.close_event()));
    Ok(pool)
}

/// Makes a connection and closes it again.
async fn try_once(options: &PgConnectOptions) -> Result<()> {
    let late = |_| Error::Io(io::Error::new(ErrorKind::TimedOut, "it does not answer"));
    let connected = timeout(PATIENCE, PgConnection::connect_with(options)).await;
    connected.map_err(late)??.close().await
}

/// Whether a server is there that does not take connections yet, or not any more, or one may come.
fn is_starting(error: &Error) -> bool {
    match error {
        Error::Io(error) => matches!(
            error.kind(),
            ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        ),
        // sqlx calls it a breach of protocol when the server ends before it says whether it has TLS.
        Error::Protocol(_) => true,
        // It starts or stops, or has no connection left.
        Error::Database(error) => {
            error.code().is_some_and(|code| code.starts_with("57P") || code == "53300")
        }
        _ => false,
    }
}

/// Whether nothing of what a connection was used for is left over, so that somebody else may have
/// it.
///
/// Whoever drops a future in the middle of a statement may leave a connection in a transaction, or
/// with an answer that nobody has read and that the next one would take for its own: sqlx 0.9 does
/// not clean up after a `BEGIN` and a `COPY` that were given up. The times differ in a transaction
/// that was begun before; a wrong answer has no such row.
async fn is_at_rest(connection: &mut PgConnection) -> Result<bool> {
    let question = sqlx::raw_sql("SELECT now() = statement_timestamp()");
    question.fetch_one(connection).await?.try_get(0)
}

/// Begins a transaction that sees the database as it is at its first statement, whatever others
/// commit meanwhile.
pub async fn snapshot(pool: &PgPool) -> Result<PgTransaction<'static>> {
    pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY").await
}

/// What the clock of the database shows.
pub async fn now(db: impl PgExecutor<'_>) -> Result<OffsetDateTime> {
    sqlx::query_scalar("SELECT database_clock()").fetch_one(db).await
}

/// Lets the statements of a transaction take as long as they take: a plan may have millions of rows.
/// Between them it may compute for some seconds. A coordinator that is stopped in the middle loses
/// the transaction all the same: what streams rows does so in pieces (`copy`), and what the server
/// computes by itself is ended by the next leader ([`end_openings`]).
pub async fn be_patient(db: impl PgExecutor<'_>) -> Result<()> {
    let patience = "
        SELECT set_config('statement_timeout', '0', true),
            set_config('lock_timeout', '60s', true),
            set_config('idle_in_transaction_session_timeout', $1, true)";
    sqlx::query(patience).bind(PAUSE).execute(db).await.map(drop)
}

/// How long a patient transaction may compute between two statements.
pub const PAUSE: &str = "15s";
/// The same while an edition is planned: the plan of one with 5·10⁷ matches takes ten seconds to be
/// proved.
pub const PLANNING_PAUSE: &str = "120s";

/// Lets a transaction compute for so long between its statements.
pub async fn pause_at_most(db: impl PgExecutor<'_>, pause: &str) -> Result<()> {
    let statement = "SELECT set_config('idle_in_transaction_session_timeout', $1, true)";
    sqlx::query(statement).bind(pause).execute(db).await.map(drop)
}

/// What transactions lock in which the leader opens editions; shared, for there may be several.
const OPENING: i64 = 0x0061_7262_6f70_656e;

/// Marks a transaction as one in which the leader opens an edition.
pub async fn begin_opening(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock_shared($1)";
    sqlx::query(statement).bind(OPENING).execute(db).await.map(drop)
}

/// Ends all transactions in which a former leader opens editions, and returns how many. It may be
/// stopped, or cut off, and others wait for what they have locked.
pub async fn end_openings(db: impl PgExecutor<'_>) -> Result<i64> {
    let statement = "
        SELECT count(pg_terminate_backend(pid)) FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1
          AND (classid::bigint << 32 | objid::bigint) = $1
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND pid <> pg_backend_pid()";
    sqlx::query_scalar(statement).bind(OPENING).fetch_one(db).await
}

/// Ends a session in which nothing is said for so long.
pub async fn end_when_silent(db: impl PgExecutor<'_>, silence: Duration) -> Result<()> {
    let statement = "SELECT set_config('idle_session_timeout', $1, false)";
    sqlx::query(statement).bind(format!("{}ms", silence.as_millis())).execute(db).await.map(drop)
}

/// What the leader of the coordinators of a database locks.
const LEADER: i64 = 0x0061_7262_6974_6572;

/// Makes a session the leader's until it ends; whether it is that now. It is asked once.
pub async fn try_to_lead(db: impl PgExecutor<'_>) -> Result<bool> {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(LEADER).fetch_one(db).await
}

/// Brings the tables up to date. Several coordinators may do so at once: one of them does it,
/// however long it takes, and the others wait.
///
/// # Errors
/// If the database was made by a newer version, or a migration fails.
pub async fn migrate(pool: &PgPool) -> Result<(), MigrateError> {
    let options = PgConnectOptions::clone(&pool.connect_options());
    let options = options.options([("statement_timeout", "0"), ("lock_timeout", "0")]);
    let patient = PgPoolOptions::new().max_connections(1).connect_lazy_with(options);
    let migrated = MIGRATIONS.run(&patient).await;
    patient.close().await;
    migrated
}

/// Whether this program can live with tables of a later version: in an upgrade coordinators of both
/// versions serve for a while.
pub async fn can_live_with_it(pool: &PgPool) -> Result<bool> {
    let newest = MIGRATIONS.iter().map(|migration| migration.version).max();
    let statement = "SELECT oldest <= $1 FROM compatibility";
    sqlx::query_scalar(statement).bind(newest).fetch_one(pool).await
}

/// The newest migration of a database that a version from before the first release made: its first
/// migration is not our baseline. `None` for other databases.
pub async fn development_migration(pool: &PgPool) -> Result<Option<i64>> {
    let baseline = MIGRATIONS.iter().find(|migration| migration.version == 1);
    let statement = "
        SELECT max(version) FROM _sqlx_migrations WHERE EXISTS (
            SELECT FROM _sqlx_migrations WHERE version = 1 AND checksum <> $1)";
    let checksum = baseline.map(|migration| &*migration.checksum);
    sqlx::query_scalar(statement).bind(checksum).fetch_one(pool).await
}

/// The major version of the server.
pub async fn server_version(pool: &PgPool) -> Result<i32> {
    let statement = "SELECT current_setting('server_version_num')::int / 10000";
    sqlx::query_scalar(statement).fetch_one(pool).await
}
