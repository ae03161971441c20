//! Failed lots: faults, retries and setting aside.

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, LotId, TournamentId, WorkerId};
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
    /// The new state of the lot: [`LotState::Delayed`], [`LotState::Aside`], or
    /// [`LotState::Cancelled`] if no edition needs its first match.
    pub state: LotState,
}

/// Records failures, and returns the new states of their lots. Skips leases that are not valid or
/// do not belong to the reporting workers. A lot of one match is retried after a delay, or set
/// aside after too many faults. The matches of a larger lot are retried one by one: it shrinks to
/// its first match, and the others get separate lots.
pub async fn fail(
    connection: &mut PgConnection,
    failures: &[Failure],
    retry_policy: &RetryPolicy,
) -> Result<Vec<FailedLease>> {
    let statement = concat!(
        "WITH held AS (
            SELECT u.*, r.count AS matches, NOT EXISTS (
                SELECT FROM editions e WHERE e.tournament = r.tournament AND e.state = 'running'
            ) OR EXISTS (
                SELECT FROM absences a
                WHERE a.tournament = r.tournament AND a.number = r.number AND a.until IS NULL
            ) AS over
            FROM ",
        failures!(),
        " JOIN lots r ON ",
        held!(lots),
        " AND ",
        ours!(lots, "u.by"),
        " ORDER BY r.tournament, r.number FOR UPDATE OF r
        ), separate AS (
            INSERT INTO lots AS l
                (tournament, number, count, expected_ms, score_len, state, not_before)
            SELECT r.tournament, match, 1, r.expected_ms / r.count, r.score_len, 'delayed',
                database_clock() + $8::interval
            FROM held JOIN lots r ON r.tournament = held.tournament AND r.number = held.number
            CROSS JOIN LATERAL generate_series(r.number + 1, r.number + r.count - 1) AS match
            WHERE EXISTS (
                SELECT FROM editions e WHERE e.tournament = r.tournament AND e.state = 'running'
            ) AND NOT EXISTS (
                SELECT FROM absences a
                WHERE a.tournament = r.tournament AND a.number = match AND a.until IS NULL
            )
            ORDER BY 1, 2
            ON CONFLICT (tournament, number) DO UPDATE SET count = 1, faults = 0,
                expected_ms = excluded.expected_ms, state = 'delayed',
                not_before = excluded.not_before
            WHERE l.state = 'cancelled'
        ), failed AS (
            UPDATE lots AS l
            SET faults = CASE WHEN held.matches > 1 THEN 0 ELSE l.faults + 1 END,
                count = 1,
                expected_ms = l.expected_ms / l.count,
                deadline = NULL,
                state = CASE WHEN held.over THEN 'cancelled'
                             WHEN held.matches = 1 AND l.faults + 1 >= $7::smallint THEN 'aside'
                             ELSE 'delayed' END::lot_state,
                not_before = CASE WHEN NOT held.over
                                  AND (held.matches > 1 OR l.faults + 1 < $7::smallint) THEN
                    database_clock()
                        + least($9::interval, $8::interval * power(2, least(l.faults, 30))) END
            FROM held WHERE l.tournament = held.tournament AND l.number = held.number
            RETURNING l.tournament, l.number, l.attempt, l.state, l.worker, held.reason, held.kind
        ), noted AS (
            INSERT INTO faults (tournament, lot, attempt, reason, at, kind, worker)
            SELECT tournament, number, attempt, left(reason, 4000), database_clock(), kind, worker
            FROM failed
        )
        SELECT tournament, number, attempt, state FROM failed"
    );
    on_failures(statement, failures, retry_policy).fetch_all(&mut *connection).await
}

/// Leases of a tournament whose deadline has passed, at most 1000 of them, locked until the
/// transaction ends.
pub async fn expire(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Lease>> {
    let statement = "
        SELECT tournament, number, attempt FROM lots
        WHERE state = 'leased' AND deadline < (SELECT database_clock()) AND tournament = $1
        ORDER BY deadline LIMIT 1000 FOR UPDATE SKIP LOCKED";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// Makes the delayed lots of a tournament pending if their delay has passed. Returns their number.
pub async fn resume_delayed(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<u64> {
    let statement = "
        WITH rested AS (
            SELECT number FROM lots
            WHERE state = 'delayed' AND not_before <= (SELECT database_clock()) AND tournament = $1
            FOR UPDATE SKIP LOCKED
        )
        UPDATE lots AS l
        SET state = CASE WHEN EXISTS (
                SELECT FROM editions e WHERE e.tournament = $1 AND e.state = 'running'
            ) THEN 'pending' ELSE 'cancelled' END::lot_state,
            not_before = NULL
        FROM rested WHERE l.tournament = $1 AND l.number = rested.number";
    Ok(sqlx::query(statement).bind(tournament).execute(db).await?.rows_affected())
}

/// Makes a lot that was set aside pending, and resets its faults. Returns whether it was set aside.
pub async fn requeue(db: impl PgExecutor<'_>, lot: LotId) -> Result<bool> {
    let statement = "
        UPDATE lots SET state = 'pending', faults = 0
        WHERE tournament = $1 AND number = $2 AND state IS NOT DISTINCT FROM 'aside'";
    let result = sqlx::query(statement).bind(lot.tournament).bind(lot.number).execute(db).await?;
    Ok(result.rows_affected() == 1)
}

/// The lots of a tournament that were set aside, in order: at most 1000.
pub async fn aside(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<LotId>> {
    let statement = "
        SELECT tournament, number FROM lots WHERE tournament = $1 AND state = 'aside'
        ORDER BY number LIMIT 1000";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}
