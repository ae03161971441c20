//! Matches that organisers declared void, and queries for such matches by worker and time of their
//! reports. A reused result is void if the original match is.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TokenId, TournamentId};
use sqlx::{PgExecutor, Result};
use time::OffsetDateTime;

/// A filter for matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchFilter {
    /// Only matches that the worker with this name reported.
    pub worker: Option<String>,
    /// Only matches reported at this time or later.
    pub from: Option<OffsetDateTime>,
    /// Only matches reported before this time.
    pub to: Option<OffsetDateTime>,
}

/// The played matches of a tournament that pass the filter and are not void, in order.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    filter: &MatchFilter,
) -> Result<Vec<MatchId>> {
    let statement = "
        SELECT r.edition, r.number
        FROM editions e
        JOIN lots l ON l.edition = e.id
        CROSS JOIN LATERAL (
            SELECT edition, number, source_edition FROM results
            WHERE edition = l.edition AND number >= l.first_match AND number < l.first_match + l.count OFFSET 0
        ) AS r
        WHERE e.tournament = $1 AND l.reported_at IS NOT NULL AND r.source_edition IS NULL
          AND ($2::text IS NULL OR l.worker = (SELECT id FROM workers WHERE name = $2))
          AND ($3::timestamptz IS NULL OR l.reported_at >= $3)
          AND ($4::timestamptz IS NULL OR l.reported_at < $4)
          AND NOT EXISTS (
              SELECT FROM invalidated_matches v WHERE v.edition = r.edition AND v.number = r.number)
        ORDER BY r.edition, r.number";
    let MatchFilter { worker, from, to } = filter;
    let query = sqlx::query_as(statement).bind(tournament).bind(worker).bind(from).bind(to);
    query.fetch_all(db).await
}

/// The originals of these matches of a tournament, in the order of `matches`. An item contains the
/// match, its original, and whether it is already void. Matches without a result are left out.
pub async fn originals(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    matches: &[MatchId],
) -> Result<Vec<(MatchId, MatchId, bool)>> {
    let statement = "
        SELECT u.edition, u.number, original.edition, original.number,
            EXISTS (SELECT FROM invalidated_matches v WHERE v.edition = original.edition
                AND v.number = original.number)
        FROM unnest($2::int[], $3::bigint[]) WITH ORDINALITY AS u (edition, number, place)
        JOIN editions e ON e.id = u.edition AND e.tournament = $1
        JOIN results r ON r.edition = u.edition AND r.number = u.number
        CROSS JOIN LATERAL (SELECT coalesce(r.source_edition, r.edition) AS edition,
            coalesce(r.source_number, r.number) AS number) AS original
        ORDER BY u.place";
    let (editions, numbers) = columns(matches);
    let query = sqlx::query_as(statement).bind(tournament).bind(editions).bind(numbers);
    let rows: Vec<(EditionId, MatchNumber, EditionId, MatchNumber, bool)> =
        query.fetch_all(db).await?;
    let id = |edition, number| MatchId { edition, number };
    let read = |(reused_edition, reused_number, edition, number, is_void)| {
        (id(reused_edition, reused_number), id(edition, number), is_void)
    };
    Ok(rows.into_iter().map(read).collect())
}

/// The matches of an edition with reused results, each with its original.
pub async fn reused_results(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Vec<(MatchNumber, MatchId)>> {
    let statement = "
        SELECT number, source_edition, source_number
        FROM results WHERE edition = $1 AND source_edition IS NOT NULL";
    let rows: Vec<(MatchNumber, EditionId, MatchNumber)> =
        sqlx::query_as(statement).bind(edition).fetch_all(db).await?;
    let read = |(reused, edition, number)| (reused, MatchId { edition, number });
    Ok(rows.into_iter().map(read).collect())
}

/// The class of the advisory lock of invalidations. The other key is the tournament. Transactions
/// that reuse results share the lock.
const INVALIDATION_LOCK: i32 = 0x766f_6964;

/// Prevents invalidations in an edition's tournament until the transaction ends, so that no match
/// becomes void between the check and the reuse of its result.
pub async fn lock_against_invalidation(db: impl PgExecutor<'_>, edition: EditionId) -> Result<()> {
    let statement = "
        SELECT pg_advisory_xact_lock_shared($1, tournament) FROM editions WHERE id = $2";
    sqlx::query(statement).bind(INVALIDATION_LOCK).bind(edition).execute(db).await.map(drop)
}

/// Waits until no transaction reuses results of a tournament. Prevents such transactions until this
/// one ends.
pub async fn lock_against_reuse(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock($1, $2)";
    sqlx::query(statement).bind(INVALIDATION_LOCK).bind(tournament).execute(db).await.map(drop)
}

/// Declares matches void, and returns how many were not void before.
pub async fn add(
    db: impl PgExecutor<'_>,
    matches: &[MatchId],
    by: TokenId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<u64> {
    let statement = "
        INSERT INTO invalidated_matches (edition, number, at, by, reason)
        SELECT u.edition, u.number, $3, $4, $5
        FROM unnest($1::int[], $2::bigint[]) AS u (edition, number)
        ON CONFLICT (edition, number) DO NOTHING";
    let (editions, numbers) = columns(matches);
    let query = sqlx::query(statement).bind(editions).bind(numbers).bind(now).bind(by);
    Ok(query.bind(reason).execute(db).await?.rows_affected())
}

/// Matches as two columns.
fn columns(matches: &[MatchId]) -> (Vec<EditionId>, Vec<MatchNumber>) {
    matches.iter().map(|id| (id.edition, id.number)).unzip()
}
