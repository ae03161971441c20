//! Shadow matches in `match_audits`: a second worker plays them again. They are leased like lots.

use arbiter_proto::ids::{Lease, TokenId, WorkerId};
use sqlx::{FromRow, PgExecutor, Result};
use time::Duration;

use super::leases::{failures, held, leases, on_failures, on_leases, ours};
use super::lots::{FailedLease, Failure, RetryPolicy};
use super::match_audits::AuditState;

/// The workers that reported matches for which no second worker has a lease yet.
pub async fn waiting(db: impl PgExecutor<'_>) -> Result<Vec<WorkerId>> {
    let statement = "
        SELECT DISTINCT worker FROM (
            SELECT a.worker FROM match_audits a
            WHERE a.kind = 'shadow' AND a.state = 'waiting' AND EXISTS (
                SELECT FROM tournaments t WHERE t.id = a.tournament AND t.state = 'open')
            LIMIT 10000
        ) AS few";
    sqlx::query_scalar(statement).fetch_all(db).await
}

/// Leases to a worker at most `limit` matches that other workers reported. Workers of one token may
/// belong to one person and confirm their own reports. So a worker gets matches of its token
/// only while no worker of another token is connected.
pub async fn claim(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    limit: usize,
    lease_time: Duration,
) -> Result<Vec<Lease>> {
    let statement = "
        WITH own AS (
            SELECT twin.worker FROM worker_tokens o JOIN worker_tokens twin ON twin.token = o.token
            WHERE o.worker = $1
        ), alone AS (
            SELECT NOT EXISTS (
                SELECT FROM workers w
                WHERE w.slots > 0 AND w.seen_at > (SELECT database_clock()) - interval '10 minutes'
                  AND w.id NOT IN (SELECT worker FROM own)
            ) AS is_alone
        ), next AS (
            SELECT a.tournament, a.number FROM match_audits a
            WHERE a.kind = 'shadow' AND a.state = 'waiting' AND a.worker <> $1
              AND ((SELECT is_alone FROM alone) OR a.worker NOT IN (SELECT worker FROM own))
              AND EXISTS (
                SELECT FROM tournaments t WHERE t.id = a.tournament AND t.state = 'open')
            ORDER BY a.faults, a.tournament, a.number LIMIT $3 FOR UPDATE OF a SKIP LOCKED
        )
        UPDATE match_audits AS a
        SET state = 'leased', attempt = a.attempt + 1, second_worker = $1,
            deadline = database_clock() + $2::interval
        FROM next
        WHERE a.tournament = next.tournament AND a.number = next.number AND a.kind = 'shadow'
        RETURNING -a.tournament AS tournament, a.number, a.attempt";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    sqlx::query_as(statement).bind(worker).bind(lease_time).bind(limit).fetch_all(db).await
}

/// Records failed attempts whose leases were valid, and returns them. Their matches are queued
/// again, or skipped after too many faults.
pub async fn fail(
    db: impl PgExecutor<'_>,
    failures: &[Failure],
    retry_policy: &RetryPolicy,
) -> Result<Vec<FailedLease>> {
    let statement = concat!(
        "UPDATE match_audits AS r
        SET faults = r.faults + 1, deadline = NULL, second_worker = NULL,
            state = CASE WHEN r.faults + 1 < $7 THEN 'waiting' ELSE 'skipped' END::audit_state,
            ended_at = CASE WHEN r.faults + 1 < $7 THEN NULL ELSE database_clock() END,
            reason = CASE WHEN r.faults + 1 < $7 THEN NULL ELSE 'it failed too often' END
        FROM ",
        failures!(),
        " WHERE ",
        held!(match_audits),
        " AND ",
        ours!(match_audits, "u.by"),
        " RETURNING u.tournament, u.number, u.attempt, 'pending'::lot_state AS state"
    );
    on_failures(statement, failures, retry_policy).fetch_all(db).await
}

/// The leases whose deadline has passed.
pub async fn expire(db: impl PgExecutor<'_>) -> Result<Vec<Lease>> {
    let statement = "
        SELECT -tournament AS tournament, number, attempt FROM match_audits a
        WHERE state = 'leased' AND deadline < (SELECT database_clock())
        ORDER BY a.tournament, number";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Whether a worker holds the lease of a second play.
pub async fn is_held(db: impl PgExecutor<'_>, lease: Lease, worker: WorkerId) -> Result<bool> {
    let statement = concat!(
        "SELECT u.* FROM ",
        leases!(),
        " JOIN match_audits r ON ",
        held!(match_audits),
        " AND r.second_worker = $4"
    );
    let row = on_leases::<Lease>(statement, Some(worker), &[lease]).fetch_optional(db).await?;
    Ok(row.is_some())
}

/// Ends the second play of a match, if the worker holds its lease and is not suspended. Returns
/// whether the result is stored.
pub async fn end(
    db: impl PgExecutor<'_>,
    lease: Lease,
    worker: WorkerId,
    (state, reason): (AuditState, Option<&str>),
) -> Result<bool> {
    let statement = concat!(
        "UPDATE match_audits AS r
        SET state = $5, reason = left($6, 4000), ended_at = database_clock(), deadline = NULL
        FROM ",
        leases!(),
        " WHERE ",
        held!(match_audits),
        " AND r.second_worker = $4 AND NOT EXISTS (SELECT FROM barred_workers WHERE worker = $4)
        RETURNING u.*"
    );
    let query = on_leases::<Lease>(statement, Some(worker), &[lease]).bind(state).bind(reason);
    Ok(query.fetch_optional(db).await?.is_some())
}

/// A match that two workers played.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct ComparedMatch {
    /// The first and the second worker.
    #[sqlx(try_from = "Vec<WorkerId>")]
    pub workers: [WorkerId; 2],
    /// The tokens of these workers.
    #[sqlx(try_from = "Vec<Option<TokenId>>")]
    pub tokens: [Option<TokenId>; 2],
    /// Whether both have the same result.
    pub agreed: bool,
    /// The bots that took part: an entrant is a bot with its program.
    pub bots: Vec<i32>,
}

/// All matches that two workers played in open tournaments. Matches reported before one of the two
/// workers was reinstated are left out.
pub async fn played(db: impl PgExecutor<'_>) -> Result<Vec<ComparedMatch>> {
    let statement = "
        SELECT ARRAY[a.worker, a.second_worker] AS workers, ARRAY[one.token, other.token] AS tokens,
            a.state = 'agreed' AS agreed, m.seats AS bots
        FROM tournaments t
        JOIN match_audits a ON a.tournament = t.id
        JOIN matches m ON m.tournament = a.tournament AND m.number = a.number
        LEFT JOIN worker_tokens one ON one.worker = a.worker
        LEFT JOIN worker_tokens other ON other.worker = a.second_worker
        LEFT JOIN suspensions s ON s.worker = a.worker
        LEFT JOIN suspensions o ON o.worker = a.second_worker
        WHERE t.state = 'open' AND a.kind = 'shadow' AND a.state IN ('agreed', 'disagreed')
          AND coalesce(a.reported_at > s.reinstated_at, true)
          AND coalesce(a.reported_at > o.reinstated_at, true)
        ORDER BY a.tournament, a.number";
    sqlx::query_as(statement).fetch_all(db).await
}
