//! The step from leased to reported: the one moment at which results count.

use arbiter_proto::ids::{EditionId, Lease, MatchNumber, WorkerId};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgExecutor, Row as _};
use time::OffsetDateTime;

use super::{Columns, LotState, lease, lot_id};

/// What a report says about its lot, besides the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The lease it was played under.
    pub lease: Lease,
    /// Who played it.
    pub worker: WorkerId,
    /// When the report came in.
    pub at: OffsetDateTime,
    /// Its first match.
    pub first: MatchNumber,
    /// How many matches were played.
    pub count: i32,
    /// Numbers in the scores of each match.
    pub width: i16,
}

/// Marks those leased lots as reported whose lease still holds and whose matches were all played,
/// and returns the leases, each with whether other lots wait for its lot. No lease is named twice.
///
/// # Errors
/// If the database fails.
pub async fn flip(db: impl PgExecutor<'_>, claims: &[Claim]) -> Result<Vec<(Lease, bool)>, Error> {
    // The comparison with 'leased' is not one that an index on leased lots could serve: the lots
    // are to be found one by one by their key, not among all that are leased.
    let statement = "
        UPDATE lots AS l SET state = 'reported', worker = u.worker, reported_at = u.at,
            deadline = NULL
        FROM (
            SELECT * FROM unnest(
                $1::int[], $2::bigint[], $3::smallint[], $4::int[],
                $5::bigint[], $6::int[], $7::smallint[], $8::timestamptz[]
            ) AS u (edition, number, attempt, worker, first, count, width, at)
            ORDER BY edition, number
        ) AS u
        WHERE l.edition = u.edition AND l.number = u.number AND l.attempt = u.attempt
          AND l.state IS NOT DISTINCT FROM 'leased'
          AND l.first = u.first AND l.count = u.count AND l.width = u.width
        RETURNING l.edition, l.number, l.attempt, l.feeds";
    let Columns { editions, numbers, attempts } = Columns::of(claims.iter().map(|c| c.lease));
    let flipped = sqlx::query(statement)
        .bind(editions)
        .bind(numbers)
        .bind(attempts)
        .bind(claims.iter().map(|claim| claim.worker.0).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.first.0).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.count).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.width).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.at).collect::<Vec<_>>())
        .fetch_all(db)
        .await?;
    flipped.iter().map(|row| Ok((lease(row)?, row.try_get("feeds")?))).collect()
}

/// Makes lots pending that waited for none but these, which were just reported; or has them weighed
/// first, if their edition weighs its lots: returns how many are to be.
///
/// # Errors
/// If the database fails.
pub async fn promote(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    reported: &[i64],
) -> Result<usize, Error> {
    let statement = "
        WITH fed AS (
            SELECT o.after AS number, count(*)::smallint AS befores
            FROM lot_order o WHERE o.edition = $1 AND o.before = ANY ($2) GROUP BY o.after
        ), locked AS (
            SELECT l.number, fed.befores FROM lots l JOIN fed USING (number)
            WHERE l.edition = $1 AND l.state IS NOT DISTINCT FROM 'blocked'
            ORDER BY l.number FOR UPDATE OF l
        ), first AS (
            SELECT CASE WHEN weighs THEN 'weighing' ELSE 'pending' END::lot_state AS state
            FROM editions WHERE id = $1
        )
        UPDATE lots AS l
        SET waits = l.waits - locked.befores,
            state = CASE WHEN l.waits = locked.befores THEN first.state ELSE l.state END
        FROM locked, first WHERE l.edition = $1 AND l.number = locked.number
        RETURNING l.state";
    let query = sqlx::query_scalar(statement).bind(edition.0).bind(reported);
    let states: Vec<LotState> = query.fetch_all(db).await?;
    Ok(states.into_iter().filter(|state| *state == LotState::Weighing).count())
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Its results are stored.
    Accepted,
    /// It had been accepted before.
    Repeated,
    /// Its lease no longer holds: somebody else plays the lot, or played it, or it was cancelled.
    Late,
    /// It does not tell of the matches of its lot, seat by seat.
    Malformed,
}

/// Where a lot stands, and with which lease.
#[derive(Debug, FromRow)]
struct Found {
    state: LotState,
    attempt: i16,
}

/// What became of reports that were not accepted just now.
///
/// # Errors
/// If the database fails.
pub async fn verdicts(
    db: impl PgExecutor<'_>,
    leases: &[Lease],
) -> Result<Vec<(Lease, Verdict)>, Error> {
    let statement = "
        SELECT u.edition, u.number, u.attempt AS reported, l.state, l.attempt
        FROM unnest($1::int[], $2::bigint[], $3::smallint[]) AS u (edition, number, attempt)
        LEFT JOIN lots l ON l.edition = u.edition AND l.number = u.number";
    let Columns { editions, numbers, attempts } = Columns::of(leases.iter().copied());
    let rows = sqlx::query(statement).bind(editions).bind(numbers).bind(attempts);
    rows.fetch_all(db).await?.iter().map(verdict).collect()
}

fn verdict(row: &PgRow) -> Result<(Lease, Verdict), Error> {
    let lease = Lease { lot: lot_id(row)?, attempt: row.try_get::<i16, _>("reported")?.into() };
    if row.try_get::<Option<LotState>, _>("state")?.is_none() {
        return Ok((lease, Verdict::Late));
    }
    let Found { state, attempt } = Found::from_row(row)?;
    let verdict = match state {
        _ if attempt != lease.attempt.0 => Verdict::Late,
        LotState::Reported | LotState::Counted => Verdict::Repeated,
        LotState::Leased => Verdict::Malformed,
        _ => Verdict::Late,
    };
    Ok((lease, verdict))
}
