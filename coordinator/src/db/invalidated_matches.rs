//! Matches that organisers declared void, and queries for such matches by worker and time of their
//! reports.

use arbiter_proto::ids::{MatchNumber, TokenId, TournamentId};
use sqlx::{PgExecutor, Result};
use time::OffsetDateTime;

use super::editions::{EditionScope, members};

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
) -> Result<Vec<MatchNumber>> {
    let statement = "
        SELECT r.number
        FROM lots l
        CROSS JOIN LATERAL (
            SELECT number FROM results
            WHERE tournament = $1 AND number >= l.number AND number < l.number + l.count OFFSET 0
        ) AS r
        WHERE l.tournament = $1 AND l.reported_at IS NOT NULL
          AND ($2::text IS NULL OR l.worker = (SELECT id FROM workers WHERE name = $2))
          AND ($3::timestamptz IS NULL OR l.reported_at >= $3)
          AND ($4::timestamptz IS NULL OR l.reported_at < $4)
          AND NOT EXISTS (
              SELECT FROM invalidated_matches v WHERE v.tournament = $1 AND v.number = r.number)
        ORDER BY r.number";
    let MatchFilter { worker, from, to } = filter;
    let query = sqlx::query_scalar(statement).bind(tournament).bind(worker).bind(from).bind(to);
    query.fetch_all(db).await
}

/// Which of these matches of a tournament were played, and whether they are void already.
pub async fn played(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    matches: &[MatchNumber],
) -> Result<Vec<(MatchNumber, bool)>> {
    let statement = "
        SELECT r.number, EXISTS (
            SELECT FROM invalidated_matches v WHERE v.tournament = $1 AND v.number = r.number)
        FROM results r WHERE r.tournament = $1 AND r.number = ANY ($2) ORDER BY r.number";
    sqlx::query_as(statement).bind(tournament).bind(matches).fetch_all(db).await
}

/// The void matches of an edition, in order.
pub async fn of_edition(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
) -> Result<Vec<MatchNumber>> {
    let statement = concat!(
        "SELECT v.number FROM invalidated_matches v WHERE ",
        members!("v"),
        " ORDER BY v.number"
    );
    sqlx::query_scalar_with(statement, edition.arguments()).fetch_all(db).await
}

/// Declares matches void, and returns how many were not void before.
pub async fn add(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    matches: &[MatchNumber],
    by: TokenId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<u64> {
    let statement = "
        INSERT INTO invalidated_matches (tournament, number, at, by, reason)
        SELECT $1, u.number, $3, $4, $5 FROM unnest($2::bigint[]) AS u (number)
        ON CONFLICT (tournament, number) DO NOTHING";
    let query = sqlx::query(statement).bind(tournament).bind(matches).bind(now).bind(by);
    Ok(query.bind(reason).execute(db).await?.rows_affected())
}
