//! Failed attempts: they ended without results because of an infrastructure fault.

use arbiter_proto::ids::{Attempt, EditionId, LotId, LotNumber, MatchNumber, WorkerId};
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

use super::matches::Seats;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Fault {
    /// The lot.
    pub lot: LotNumber,
    /// The number of the failed lease.
    pub attempt: Attempt,
    /// The reason.
    pub reason: String,
    /// The time.
    pub at: OffsetDateTime,
}

/// A match that a worker played or failed to play.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct MatchAttempt {
    /// The worker.
    pub worker: WorkerId,
    /// The match.
    pub number: MatchNumber,
    /// The entrants, seat 1 first.
    #[sqlx(try_from = "Vec<i32>")]
    pub seats: Seats,
}

/// Maximum number of matches that are searched for a pattern of faults, newest first.
const MAX_MATCHES: i64 = 5000;

/// The number of lots of an edition that are set aside, and the identity of its last fault if any
/// lot is set aside, or else 0.
pub async fn latest(db: impl PgExecutor<'_>, edition: EditionId) -> Result<(i64, i64)> {
    let statement = "
        SELECT lots, CASE WHEN lots > 0 THEN
            coalesce((SELECT max(id) FROM faults WHERE edition = $1), 0) ELSE 0 END
        FROM (SELECT count(*) AS lots FROM lots WHERE edition = $1 AND state = 'aside') AS aside";
    sqlx::query_as(statement).bind(edition).fetch_one(db).await
}

/// The faults that a bot can cause, one for each attempt at a single match of an edition, newest
/// first. Faults of the coordinator or of the worker alone are left out.
pub async fn of_matches(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<MatchAttempt>> {
    let statement = "
        SELECT f.worker, m.number, m.seats
        FROM faults f
        JOIN lots l ON l.edition = f.edition AND l.number = f.lot AND l.count = 1
        JOIN matches m ON m.edition = f.edition AND m.number = l.first_match
        WHERE f.edition = $1 AND f.worker IS NOT NULL
          AND f.kind IN ('expired', 'system', 'unclean', 'panic', 'inputs')
        ORDER BY f.id DESC LIMIT $2";
    sqlx::query_as(statement).bind(edition).bind(MAX_MATCHES).fetch_all(db).await
}

/// The matches of an edition that workers played since its first fault, newest first.
pub async fn played_since(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Vec<MatchAttempt>> {
    let statement = "
        SELECT l.worker, m.number, m.seats
        FROM (
            SELECT worker, first_match, count, reported_at FROM lots
            WHERE edition = $1 AND state IN ('reported', 'counted')
              AND NOT reused AND worker IS NOT NULL
              AND reported_at >= (SELECT min(at) FROM faults WHERE edition = $1)
            ORDER BY reported_at DESC LIMIT $2
        ) AS l
        JOIN matches m ON m.edition = $1
            AND m.number >= l.first_match AND m.number < l.first_match + l.count
        ORDER BY l.reported_at DESC LIMIT $2";
    sqlx::query_as(statement).bind(edition).bind(MAX_MATCHES).fetch_all(db).await
}

/// The faults of a lot, newest first.
pub async fn of_lot(db: impl PgExecutor<'_>, lot: LotId) -> Result<Vec<Fault>> {
    let statement = "
        SELECT lot, attempt, reason, at FROM faults WHERE edition = $1 AND lot = $2
        ORDER BY attempt DESC";
    sqlx::query_as(statement).bind(lot.edition).bind(lot.number).fetch_all(db).await
}
