//! Matches that a second worker plays again, in `match_audits`: leased as lots are.

use arbiter_proto::ids::{Attempt, EditionId, Lease, MatchId, MatchNumber, TokenId, WorkerId};
use sqlx::postgres::PgRow;
use sqlx::{Error, PgExecutor, Row as _};
use time::Duration;

use super::match_audits::AuditState;
use super::{Query, fetch};

/// A statement on these shadow leases by edition and number of the match and by attempt, `$1` to
/// `$3`, of this worker, `$4`.
fn on_leases<'q>(statement: &'static str, by: Option<WorkerId>, leases: &[Lease]) -> Query<'q> {
    let shadows = leases.iter().filter_map(|lease| Some((lease.shadow()?, lease.attempt.0)));
    let parts = shadows.map(|(id, attempt)| (id.edition.0, (id.number.0, attempt)));
    let (editions, (numbers, attempts)): (Vec<_>, (Vec<_>, Vec<_>)) = parts.unzip();
    let query = sqlx::query(statement).bind(editions).bind(numbers).bind(attempts);
    query.bind(by.map(|worker| worker.0))
}

/// The rest of a statement on leases that changes `match_audits AS a`: those that hold.
macro_rules! held {
    ($rest:literal) => {
        concat!(
            "FROM unnest($1::int[], $2::bigint[], $3::int[]) AS u (edition, number, attempt)
            WHERE a.edition = u.edition AND a.number = u.number AND a.attempt = u.attempt
              AND a.kind = 'shadow' AND a.state = 'leased' ",
            $rest
        )
    };
}

fn lease(row: &PgRow) -> Result<Lease, Error> {
    let edition = EditionId(row.try_get("edition")?);
    let number = MatchNumber(row.try_get("number")?);
    let attempt = Attempt(row.try_get("attempt")?);
    Ok(Lease::of_shadow(MatchId { edition, number }, attempt))
}

/// The workers that reported matches which wait for another worker.
pub async fn waiting(db: impl PgExecutor<'_>) -> Result<Vec<WorkerId>, Error> {
    let statement = "
        SELECT DISTINCT worker FROM (
            SELECT a.worker FROM match_audits a
            WHERE a.kind = 'shadow' AND a.state = 'waiting' AND EXISTS (
                SELECT FROM editions e JOIN tournaments t ON t.id = e.tournament
                WHERE e.id = a.edition AND e.state <> 'planning' AND t.state = 'open')
            LIMIT 10000
        ) AS few";
    let found: Vec<i32> = sqlx::query_scalar(statement).fetch_all(db).await?;
    Ok(found.into_iter().map(WorkerId).collect())
}

/// Leases matches to a worker that other workers reported, at most `room` of them. Workers of one
/// token may be one person's, who would confirm what they reported themselves: while a worker of
/// another token is connected, the match is left to it.
pub async fn claim(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    room: usize,
    lease_time: Duration,
) -> Result<Vec<Lease>, Error> {
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
            SELECT a.edition, a.number FROM match_audits a
            WHERE a.kind = 'shadow' AND a.state = 'waiting' AND a.worker <> $1
              AND ((SELECT is_alone FROM alone) OR a.worker NOT IN (SELECT worker FROM own))
              AND EXISTS (
                SELECT FROM editions e JOIN tournaments t ON t.id = e.tournament
                WHERE e.id = a.edition AND e.state <> 'planning' AND t.state = 'open')
            ORDER BY a.faults, a.edition, a.number LIMIT $3 FOR UPDATE OF a SKIP LOCKED
        )
        UPDATE match_audits AS a
        SET state = 'leased', attempt = a.attempt + 1, second_worker = $1,
            deadline = database_clock() + $2::interval
        FROM next WHERE a.edition = next.edition AND a.number = next.number AND a.kind = 'shadow'
        RETURNING a.edition, a.number, a.attempt";
    let room = i64::try_from(room).unwrap_or(i64::MAX);
    fetch(sqlx::query(statement).bind(worker.0).bind(lease_time).bind(room), db, lease).await
}

/// Renews those of these leases that still hold, and returns them; a match whose row is locked
/// counts as held. Leases of other workers are left out where a worker asks; so in what follows.
pub async fn renew(
    db: impl PgExecutor<'_>,
    by: Option<WorkerId>,
    leases: &[Lease],
    lease_time: Duration,
) -> Result<Vec<Lease>, Error> {
    let statement = "
        WITH held AS MATERIALIZED (
            SELECT a.edition, a.number, a.attempt
            FROM unnest($1::int[], $2::bigint[], $3::int[]) AS u (edition, number, attempt)
            JOIN match_audits a ON a.edition = u.edition AND a.number = u.number
                AND a.attempt = u.attempt AND a.kind = 'shadow' AND a.state = 'leased'
                AND ($4::int IS NULL OR a.second_worker = $4)
        ), free AS (
            SELECT a.edition, a.number
            FROM held JOIN match_audits a ON a.edition = held.edition AND a.number = held.number
                AND a.attempt = held.attempt AND a.kind = 'shadow' AND a.state = 'leased'
            FOR UPDATE OF a SKIP LOCKED
        ), renewed AS (
            UPDATE match_audits AS a SET deadline = database_clock() + $5::interval FROM free
            WHERE a.edition = free.edition AND a.number = free.number AND a.kind = 'shadow'
        )
        SELECT edition, number, attempt FROM held";
    fetch(on_leases(statement, by, leases).bind(lease_time), db, lease).await
}

/// The leases that these workers hold, locked until the transaction ends.
pub async fn held_by(db: impl PgExecutor<'_>, workers: &[i32]) -> Result<Vec<Lease>, Error> {
    let statement = "
        SELECT edition, number, attempt FROM match_audits
        WHERE kind = 'shadow' AND state = 'leased' AND second_worker = ANY ($1)
        ORDER BY edition, number FOR UPDATE";
    fetch(sqlx::query(statement).bind(workers), db, lease).await
}

/// Takes those of these leases back that still hold, and returns them.
pub async fn give_back(
    db: impl PgExecutor<'_>,
    by: Option<WorkerId>,
    leases: &[Lease],
) -> Result<Vec<Lease>, Error> {
    let statement = concat!(
        "UPDATE match_audits AS a SET state = 'waiting', deadline = NULL, second_worker = NULL ",
        held!(
            "AND ($4::int IS NULL OR a.second_worker = $4)
            RETURNING a.edition, a.number, a.attempt"
        )
    );
    fetch(on_leases(statement, by, leases), db, lease).await
}

/// Takes note that attempts have failed whose leases still held, and returns these: their matches
/// wait again, or are left alone after so many faults.
pub async fn fail(
    db: impl PgExecutor<'_>,
    by: Option<WorkerId>,
    leases: &[Lease],
    most: i16,
) -> Result<Vec<Lease>, Error> {
    let statement = concat!(
        "UPDATE match_audits AS a
        SET faults = a.faults + 1, deadline = NULL, second_worker = NULL,
            state = CASE WHEN a.faults + 1 < $5 THEN 'waiting' ELSE 'skipped' END::audit_state,
            ended_at = CASE WHEN a.faults + 1 < $5 THEN NULL ELSE database_clock() END,
            reason = CASE WHEN a.faults + 1 < $5 THEN NULL ELSE 'it failed too often' END ",
        held!(
            "AND ($4::int IS NULL OR a.second_worker = $4)
            RETURNING a.edition, a.number, a.attempt"
        )
    );
    fetch(on_leases(statement, by, leases).bind(most), db, lease).await
}

/// The leases whose deadline has passed.
pub async fn overdue(db: impl PgExecutor<'_>) -> Result<Vec<Lease>, Error> {
    let statement = "
        SELECT edition, number, attempt FROM match_audits
        WHERE state = 'leased' AND deadline < (SELECT database_clock())
        ORDER BY edition, number";
    fetch(sqlx::query(statement), db, lease).await
}

/// Whether a worker holds the lease of a second play.
pub async fn is_held(
    db: impl PgExecutor<'_>,
    lease: Lease,
    worker: WorkerId,
) -> Result<bool, Error> {
    let statement = "
        SELECT FROM match_audits a
        JOIN unnest($1::int[], $2::bigint[], $3::int[]) AS u (edition, number, attempt)
            ON a.edition = u.edition AND a.number = u.number AND a.attempt = u.attempt
        WHERE a.kind = 'shadow' AND a.state = 'leased' AND a.second_worker = $4";
    Ok(on_leases(statement, Some(worker), &[lease]).fetch_optional(db).await?.is_some())
}

/// Ends the second play of a match by a worker that holds its lease, and is not suspended; whether
/// it does.
pub async fn end(
    db: impl PgExecutor<'_>,
    lease: Lease,
    worker: WorkerId,
    (state, reason): (AuditState, Option<&str>),
) -> Result<bool, Error> {
    let statement = concat!(
        "UPDATE match_audits AS a
        SET state = $5, reason = left($6, 4000), ended_at = database_clock(), deadline = NULL ",
        held!(
            "AND a.second_worker = $4
              AND NOT EXISTS (SELECT FROM barred_workers WHERE worker = $4)"
        )
    );
    let query = on_leases(statement, Some(worker), &[lease]).bind(state).bind(reason);
    let done = query.execute(db).await?;
    Ok(done.rows_affected() == 1)
}

/// A match that two workers played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Who played it first, and who once more.
    pub workers: [WorkerId; 2],
    /// The tokens that their names belong to.
    pub tokens: [Option<TokenId>; 2],
    /// Whether both came to the same.
    pub agreed: bool,
    /// The versions of the bots that took part.
    pub bots: Vec<i32>,
}

/// All matches that two workers played in tournaments that are open, but for those that were
/// reported before one of the two was reinstated.
pub async fn played(db: impl PgExecutor<'_>) -> Result<Vec<Played>, Error> {
    let statement = "
        SELECT a.worker, a.second_worker, one.token AS first_token, other.token AS second_token,
            a.state = 'agreed' AS agreed, ARRAY(
            SELECT n.version FROM entrants n
            WHERE n.edition = a.edition AND n.entrant = ANY (m.seats)
        ) AS bots
        FROM tournaments t
        JOIN editions e ON e.tournament = t.id
        JOIN match_audits a ON a.edition = e.id
        JOIN matches m ON m.edition = a.edition AND m.number = a.number
        LEFT JOIN worker_tokens one ON one.worker = a.worker
        LEFT JOIN worker_tokens other ON other.worker = a.second_worker
        LEFT JOIN suspensions s ON s.worker = a.worker
        LEFT JOIN suspensions o ON o.worker = a.second_worker
        WHERE t.state = 'open' AND a.kind = 'shadow' AND a.state IN ('agreed', 'disagreed')
          AND coalesce(a.reported_at > s.reinstated_at, true)
          AND coalesce(a.reported_at > o.reinstated_at, true)
        ORDER BY a.edition, a.number";
    let read = |row: &PgRow| {
        let token = |column| -> Result<_, Error> {
            Ok(row.try_get::<Option<i32>, _>(column)?.map(TokenId))
        };
        Ok(Played {
            workers: [WorkerId(row.try_get("worker")?), WorkerId(row.try_get("second_worker")?)],
            tokens: [token("first_token")?, token("second_token")?],
            agreed: row.try_get("agreed")?,
            bots: row.try_get("bots")?,
        })
    };
    fetch(sqlx::query(statement), db, read).await
}
