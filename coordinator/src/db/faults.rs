//! Failed attempts: they ended without results because of an infrastructure fault.

use arbiter_proto::ids::{Attempt, LotId, LotNumber, MatchNumber, TournamentId, WorkerId};
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
    /// The kind, as `arbiter_proto::fault::FaultKind` writes it.
    pub kind: String,
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

/// The number of lots of a tournament that are set aside, and the identity of its last fault if any
/// lot is set aside, or else 0.
pub async fn latest(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<(i64, i64)> {
    let statement = "
        SELECT lots, CASE WHEN lots > 0 THEN
            coalesce((SELECT max(id) FROM faults WHERE tournament = $1), 0) ELSE 0 END
        FROM (
            SELECT count(*) AS lots FROM lots WHERE tournament = $1 AND state = 'aside'
        ) AS aside";
    sqlx::query_as(statement).bind(tournament).fetch_one(db).await
}

/// The faults of a tournament's running edition and of the editions that it replaced: the
/// tournament `$1`, since its last complete edition. That edition left no match unplayed.
macro_rules! recent {
    ($row:literal) => {
        concat!(
            $row,
            ".tournament = $1 AND ",
            $row,
            ".at >= coalesce((
                SELECT max(ended_at) FROM editions WHERE tournament = $1 AND state = 'complete'
            ), '-infinity')"
        )
    };
}

/// The faults that a bot can cause, one for each attempt at a single match of a tournament since
/// its last complete edition, newest first. Faults of the coordinator, of the worker alone or of
/// rules are left out: rules must judge every reply, whichever bot sends it.
pub async fn of_matches(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<MatchAttempt>> {
    // A lot of several matches shrinks to its first match when it fails, and its faults are counted
    // from then on. So earlier faults of the lot say nothing about that match.
    let statement = concat!(
        "SELECT f.worker, m.number, m.seats
        FROM (
            SELECT *, row_number() OVER (PARTITION BY lot ORDER BY attempt DESC) AS place
            FROM faults r WHERE ",
        recent!("r"),
        "
        ) AS f
        JOIN lots l ON l.tournament = $1 AND l.number = f.lot
            AND l.count = 1 AND f.place <= l.faults
        JOIN matches m ON m.tournament = $1 AND m.number = f.lot
        WHERE f.worker IS NOT NULL
          AND f.kind IN ('expired', 'system', 'unclean', 'panic', 'inputs')
        ORDER BY f.id DESC LIMIT $2"
    );
    sqlx::query_as(statement).bind(tournament).bind(MAX_MATCHES).fetch_all(db).await
}

/// The matches of a tournament that workers played since its first fault after its last complete
/// edition, newest first.
pub async fn played_since(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<MatchAttempt>> {
    let statement = concat!(
        "SELECT l.worker, m.number, m.seats
        FROM (
            SELECT worker, number, count, reported_at FROM lots
            WHERE tournament = $1 AND state IN ('reported', 'counted') AND worker IS NOT NULL
              AND reported_at >= (SELECT min(r.at) FROM faults r WHERE ",
        recent!("r"),
        ")
            ORDER BY reported_at DESC LIMIT $2
        ) AS l
        JOIN matches m ON m.tournament = $1
            AND m.number >= l.number AND m.number < l.number + l.count
        ORDER BY l.reported_at DESC LIMIT $2"
    );
    sqlx::query_as(statement).bind(tournament).bind(MAX_MATCHES).fetch_all(db).await
}

/// The faults of a lot, newest first.
pub async fn of_lot(db: impl PgExecutor<'_>, lot: LotId) -> Result<Vec<Fault>> {
    let statement = "
        SELECT lot, attempt, kind, reason, at FROM faults WHERE tournament = $1 AND lot = $2
        ORDER BY attempt DESC";
    sqlx::query_as(statement).bind(lot.tournament).bind(lot.number).fetch_all(db).await
}
