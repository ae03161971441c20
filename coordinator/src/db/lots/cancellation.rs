//! Cancellation of the lots of cancelled or replaced editions.

use arbiter_proto::ids::EditionId;
use sqlx::{PgConnection, PgExecutor, Result};

/// Cancels the lots of an edition that are not reported yet, and returns their number. The caller
/// has locked the edition's row, so no lot is leased meanwhile.
pub async fn cancel(connection: &mut PgConnection, edition: EditionId) -> Result<u64> {
    let statement = "
        WITH open AS (
            SELECT number FROM lots WHERE edition = $1 AND state = 'leased'
            ORDER BY number FOR UPDATE
        )
        UPDATE lots AS l SET state = 'cancelled', deadline = NULL
        FROM open WHERE l.edition = $1 AND l.number = open.number";
    let leased = sqlx::query(statement).bind(edition).execute(&mut *connection).await?;
    Ok(leased.rows_affected() + cancel_others(connection, edition).await?)
}

/// Cancels pending lots of a cancelled edition, and returns their number. Such lots remain if a
/// concurrent transaction returned or expired their leases during the cancellation.
pub async fn cancel_returned(db: impl PgExecutor<'_>, edition: EditionId) -> Result<u64> {
    let statement = "
        WITH open AS (
            SELECT number FROM lots WHERE edition = $1 AND state = 'pending'
            ORDER BY number FOR UPDATE SKIP LOCKED
        )
        UPDATE lots AS l SET state = 'cancelled'
        FROM open, editions e
        WHERE e.id = $1 AND e.state = 'cancelled' AND l.edition = $1 AND l.number = open.number";
    Ok(sqlx::query(statement).bind(edition).execute(db).await?.rows_affected())
}

/// Cancels the lots of an edition that are neither leased nor finished, and returns their number.
async fn cancel_others(connection: &mut PgConnection, edition: EditionId) -> Result<u64> {
    let statement = "
        WITH open AS (
            SELECT number FROM lots
            WHERE edition = $1
              AND state IN ('blocked', 'checking_reuse', 'pending', 'delayed', 'aside')
            ORDER BY number FOR UPDATE
        )
        UPDATE lots AS l SET state = 'cancelled', not_before = NULL
        FROM open WHERE l.edition = $1 AND l.number = open.number";
    Ok(sqlx::query(statement).bind(edition).execute(connection).await?.rows_affected())
}

/// Cancels the lots of an edition that the edition `by` replaces, and returns their number. A
/// leased lot is not cancelled if the new edition may reuse one of its results: all bots of that
/// match are in the new edition in the same versions. The caller has locked the edition's row.
pub async fn replace(
    connection: &mut PgConnection,
    edition: EditionId,
    by: EditionId,
) -> Result<u64> {
    let statement = "
        WITH gone AS MATERIALIZED (
            SELECT array_agg(o.entrant) AS entrants
            FROM entrants o JOIN versions was ON was.id = o.version
            WHERE o.edition = $1 AND NOT EXISTS (
                SELECT FROM entrants n JOIN versions v ON v.id = n.version
                WHERE n.edition = $2 AND n.bot = o.bot AND v.digest = was.digest)
        ), open AS (
            SELECT number FROM lots l
            WHERE edition = $1 AND state = 'leased' AND NOT EXISTS (
                SELECT FROM matches m
                WHERE m.edition = $1 AND m.number >= l.first_match AND m.number < l.first_match + l.count
                  AND NOT m.seats && coalesce((SELECT entrants FROM gone), '{}'))
            ORDER BY number FOR UPDATE
        )
        UPDATE lots AS l SET state = 'cancelled', deadline = NULL
        FROM open WHERE l.edition = $1 AND l.number = open.number";
    let query = sqlx::query(statement).bind(edition).bind(by);
    let obsolete = query.execute(&mut *connection).await?.rows_affected();
    Ok(obsolete + cancel_others(connection, edition).await?)
}
