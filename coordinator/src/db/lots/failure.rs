//! Failed lots: faults, retries, splitting and setting aside.

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, Lease, LotId, WorkerId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use time::Duration;

use super::LotState;
use crate::db::leases::{failures, held, on_failures, ours};

/// A lease that ended without results because of an infrastructure fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The lease.
    pub lease: Lease,
    /// The worker that reported it. The failure counts only if this worker holds the lease. `None`
    /// if the coordinator detected the failure.
    pub by: Option<WorkerId>,
    /// The kind of failure.
    pub kind: FaultKind,
    /// A description for the organiser.
    pub reason: String,
}

/// How failed lots are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// A lot with this many faults is set aside.
    pub faults: i16,
    /// The delay after the first fault. It doubles with each further fault.
    pub delay: Duration,
    /// The longest delay.
    pub max_delay: Duration,
}

/// The new state of a failed lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct FailedLease {
    /// The lease that failed.
    #[sqlx(flatten)]
    pub lease: Lease,
    /// The new state of the lot: [`LotState::Delayed`], [`LotState::Split`], [`LotState::Aside`],
    /// or [`LotState::Cancelled`] if its edition was replaced.
    pub state: LotState,
}

/// Records failures, and returns the new states of their lots. Skips leases that are not valid or
/// do not belong to the reporting workers. A lot of several matches is split. A lot of one match is
/// retried after a delay, or set aside after too many faults.
pub async fn fail(
    connection: &mut PgConnection,
    failures: &[Failure],
    retry_policy: &RetryPolicy,
) -> Result<Vec<FailedLease>> {
    let statement = concat!(
        "WITH held AS (
            SELECT u.*, e.state = 'cancelled' AS over
            FROM ",
        failures!(),
        " JOIN lots r ON ",
        held!(lots),
        " AND ",
        ours!(lots, "u.by"),
        " JOIN editions e ON e.id = r.edition
            ORDER BY r.edition, r.number FOR UPDATE OF r
        ), failed AS (
            UPDATE lots AS l
            SET faults = l.faults + 1,
                deadline = NULL,
                state = CASE WHEN held.over THEN 'cancelled'
                             WHEN l.count > 1 THEN 'split'
                             WHEN l.faults + 1 >= $7::smallint THEN 'aside' ELSE 'delayed' END::lot_state,
                not_before = CASE WHEN NOT held.over AND l.count = 1
                                       AND l.faults + 1 < $7::smallint THEN
                    database_clock()
                        + least($9::interval, $8::interval * power(2, least(l.faults, 30))) END
            FROM held WHERE l.edition = held.edition AND l.number = held.number
            RETURNING l.edition, l.number, l.attempt, l.state, l.worker, held.reason, held.kind
        ), noted AS (
            INSERT INTO faults (edition, lot, attempt, reason, at, kind, worker)
            SELECT edition, number, attempt, left(reason, 4000), database_clock(), kind, worker
            FROM failed
        )
        SELECT edition, number, attempt, state FROM failed"
    );
    let failed = on_failures(statement, failures, retry_policy).fetch_all(&mut *connection).await?;
    let split_lots: Vec<_> = failed.iter().filter(|lot| lot.state == LotState::Split).collect();
    if !split_lots.is_empty() {
        let lots = split_lots.iter().map(|failed| failed.lease.lot);
        retry_singly(connection, lots, retry_policy).await?;
    }
    Ok(failed)
}

/// Puts each match of split lots into a separate lot.
async fn retry_singly(
    connection: &mut PgConnection,
    lots: impl Iterator<Item = LotId>,
    retry_policy: &RetryPolicy,
) -> Result<()> {
    let statement = "
        INSERT INTO lots (edition, number, first_match, count, expected_ms, score_len, faults, state, not_before)
        SELECT l.edition, -1 - match, match, 1, l.expected_ms / l.count, l.score_len, 0, 'delayed',
            database_clock() + $3::interval
        FROM unnest($1::int[], $2::bigint[]) AS u (edition, number)
        JOIN lots l ON l.edition = u.edition AND l.number = u.number
        CROSS JOIN LATERAL generate_series(l.first_match, l.first_match + l.count - 1) AS match
        ORDER BY l.edition, match";
    let (editions, numbers): (Vec<_>, Vec<_>) = lots.map(|lot| (lot.edition, lot.number)).unzip();
    let query = sqlx::query(statement).bind(editions).bind(numbers).bind(retry_policy.delay);
    query.execute(connection).await.map(drop)
}

/// Leases of an edition whose deadline has passed, at most 1000 of them, locked until the
/// transaction ends.
pub async fn expire(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<Lease>> {
    let statement = "
        SELECT edition, number, attempt FROM lots
        WHERE state = 'leased' AND deadline < (SELECT database_clock()) AND edition = $1
        ORDER BY deadline LIMIT 1000 FOR UPDATE SKIP LOCKED";
    sqlx::query_as(statement).bind(edition).fetch_all(db).await
}

/// Makes the delayed lots of an edition pending if their delay has passed. Returns their number.
pub async fn resume_delayed(db: impl PgExecutor<'_>, edition: EditionId) -> Result<u64> {
    let statement = "
        WITH rested AS (
            SELECT edition, number FROM lots
            WHERE state = 'delayed' AND not_before <= (SELECT database_clock()) AND edition = $1
            FOR UPDATE SKIP LOCKED
        )
        UPDATE lots AS l
        SET state = CASE WHEN e.state = 'cancelled' THEN 'cancelled' ELSE 'pending' END::lot_state,
            not_before = NULL
        FROM rested JOIN editions e ON e.id = rested.edition
        WHERE l.edition = rested.edition AND l.number = rested.number";
    Ok(sqlx::query(statement).bind(edition).execute(db).await?.rows_affected())
}

/// Makes a lot that was set aside pending, and resets its faults. Returns whether it was set aside.
pub async fn requeue(db: impl PgExecutor<'_>, lot: LotId) -> Result<bool> {
    let statement = "
        UPDATE lots SET state = 'pending', faults = 0
        WHERE edition = $1 AND number = $2 AND state IS NOT DISTINCT FROM 'aside'";
    let result = sqlx::query(statement).bind(lot.edition).bind(lot.number).execute(db).await?;
    Ok(result.rows_affected() == 1)
}

/// The lots of an edition that were set aside, in order: at most 1000.
pub async fn aside(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<LotId>> {
    let statement = "
        SELECT edition, number FROM lots WHERE edition = $1 AND state = 'aside'
        ORDER BY number LIMIT 1000";
    sqlx::query_as(statement).bind(edition).fetch_all(db).await
}
