//! The interpreters and compilers of workers, for authors of bots, and trials that need a worker
//! with one of them.

use arbiter_proto::ids::WorkerId;
use arbiter_proto::v1::Runtime;
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

use super::trials::Outcome;

/// A program in one version on some of the connected workers.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct RuntimeCount {
    /// The name of the program, such as `python3`.
    pub program: String,
    /// Its version.
    pub version: String,
    /// The number of workers.
    pub workers: i64,
}

/// Stores the programs that a worker announced, in place of the former ones.
pub async fn set(db: &mut PgConnection, worker: WorkerId, runtimes: &[Runtime]) -> Result<()> {
    let statement = "DELETE FROM worker_runtimes WHERE worker = $1 AND program <> ALL ($2)";
    let programs: Vec<_> = runtimes.iter().map(|runtime| runtime.program.as_str()).collect();
    sqlx::query(statement).bind(worker).bind(&programs).execute(&mut *db).await?;
    let statement = "
        INSERT INTO worker_runtimes (worker, program, version)
        SELECT $1, u.program, u.version FROM unnest($2::text[], $3::text[]) AS u (program, version)
        ON CONFLICT (worker, program) DO UPDATE SET version = excluded.version";
    let versions: Vec<_> = runtimes.iter().map(|runtime| runtime.version.as_str()).collect();
    let query = sqlx::query(statement).bind(worker).bind(&programs).bind(&versions);
    query.execute(db).await.map(drop)
}

/// The number of workers that were connected since `since`.
pub async fn connected(db: impl PgExecutor<'_>, since: OffsetDateTime) -> Result<i64> {
    let statement = "SELECT count(*) FROM workers WHERE slots > 0 AND seen_at >= $1";
    sqlx::query_scalar(statement).bind(since).fetch_one(db).await
}

/// The programs of the workers that were connected since `since`, by name.
pub async fn list(db: impl PgExecutor<'_>, since: OffsetDateTime) -> Result<Vec<RuntimeCount>> {
    let statement = "
        SELECT r.program, r.version, count(*) AS workers
        FROM worker_runtimes r JOIN workers w ON w.id = r.worker
        WHERE w.slots > 0 AND w.seen_at >= $1
        GROUP BY r.program, r.version ORDER BY r.program, count(*) DESC, r.version";
    sqlx::query_as(statement).bind(since).fetch_all(db).await
}

/// The condition that another worker than `$worker` is connected, has the program `$program`, and
/// is not known to lack a program of the version `$version`.
macro_rules! other_worker_has {
    ($version:literal, $worker:literal, $program:literal) => {
        concat!(
            "EXISTS (
                SELECT FROM worker_runtimes r JOIN workers w ON w.id = r.worker
                WHERE r.program = ",
            $program,
            " AND w.id <> ",
            $worker,
            " AND w.slots > 0 AND w.seen_at > database_clock() - interval '1 minute'
                  AND NOT EXISTS (
                      SELECT FROM trial_exclusions o
                      WHERE o.version = ",
            $version,
            " AND o.worker = w.id))"
        )
    };
}
pub(super) use other_worker_has;

/// Queues a failed trial again if the worker lacks this program and another connected worker has
/// it. The worker does not get the trial again while that is so. Returns whether it was queued.
pub async fn try_elsewhere(
    db: &mut PgConnection,
    outcome: &Outcome,
    program: &str,
) -> Result<bool> {
    let Some(version) = outcome.lease.version() else { return Ok(false) };
    let statement = concat!(
        "UPDATE trials SET state = 'waiting', deadline = NULL, not_before = NULL
        WHERE version = $1 AND attempt = $2 AND state = 'leased'
          AND (holder_attempt IS DISTINCT FROM attempt OR holder = $3)
          AND NOT EXISTS (SELECT FROM barred_workers WHERE worker = $3) AND ",
        other_worker_has!("$1", "$3", "$4")
    );
    let query = sqlx::query(statement).bind(version).bind(outcome.lease.attempt);
    let query = query.bind(outcome.worker).bind(program);
    if query.execute(&mut *db).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let statement = "
        INSERT INTO trial_exclusions (version, worker, program) VALUES ($1, $2, $3)
        ON CONFLICT (version, worker) DO NOTHING";
    let query = sqlx::query(statement).bind(version).bind(outcome.worker).bind(program);
    query.execute(db).await?;
    Ok(true)
}
