//! Statistics for operators. These statements read whole tables, but only small ones. For large
//! tables they read sums that are already stored.

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

/// Statistics of an edition.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct EditionStats {
    /// The edition.
    pub id: EditionId,
    /// Its tournament.
    pub tournament: TournamentId,
    /// The name of its tournament.
    pub tournament_name: String,
    /// The game.
    pub game: String,
    /// Its number in the tournament.
    pub number: i32,
    /// Its state.
    pub state: super::editions::EditionState,
    /// Number of matches planned until now.
    pub matches: i64,
    /// Number of matches in its standings.
    pub counted: i64,
    /// When it was completed or cancelled.
    pub ended_at: Option<OffsetDateTime>,
}

/// All editions.
pub async fn editions(db: impl PgExecutor<'_>) -> Result<Vec<EditionStats>> {
    let statement = "
        SELECT e.id, e.tournament, t.name AS tournament_name, t.game, e.number, e.state, e.matches,
            p.counted, e.ended_at
        FROM editions e
        JOIN tournaments t ON t.id = e.tournament
        JOIN progress p ON p.edition = e.id
        ORDER BY e.id";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Numbers of incidents in the standings of an edition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct IncidentCounts {
    /// Time losses.
    pub clock: i64,
    /// Illegal replies.
    pub illegal: i64,
    /// Bots that crashed, exited or closed a pipe.
    pub gone: i64,
    /// Bots that wrote too much output.
    pub flood: i64,
    /// Bad replies that were not forfeits.
    pub bad_answers: i64,
}

/// The incidents in the counted matches of an edition.
pub async fn incidents(db: impl PgExecutor<'_>, edition: EditionId) -> Result<IncidentCounts> {
    let statement = "
        SELECT coalesce(sum(clock), 0)::bigint AS clock,
            coalesce(sum(illegal), 0)::bigint AS illegal,
            coalesce(sum(gone), 0)::bigint AS gone,
            coalesce(sum(flood), 0)::bigint AS flood,
            coalesce(sum(bad_answers), 0)::bigint AS bad_answers
        FROM standings WHERE edition = $1";
    sqlx::query_as(statement).bind(edition).fetch_one(db).await
}

/// The number of faults of each kind. The table is small: faults are rare.
pub async fn faults(db: impl PgExecutor<'_>) -> Result<Vec<(String, i64)>> {
    let statement = "SELECT coalesce(kind, 'unknown'), count(*) FROM faults GROUP BY 1 ORDER BY 1";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The number of trials in each state.
pub async fn trials(db: impl PgExecutor<'_>) -> Result<Vec<(String, i64)>> {
    let statement = "SELECT state::text, count(*) FROM trials GROUP BY 1 ORDER BY 1";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The number of all workers, the number of workers connected since `since`, and the number of
/// slots of these connected workers.
pub async fn workers(db: impl PgExecutor<'_>, since: OffsetDateTime) -> Result<(i64, i64, i64)> {
    let statement = "
        SELECT count(*), count(*) FILTER (WHERE seen_at >= $1 AND slots > 0),
            coalesce(sum(slots::bigint) FILTER (WHERE seen_at >= $1), 0)::bigint
        FROM workers";
    sqlx::query_as(statement).bind(since).fetch_one(db).await
}

/// The size of the database in bytes.
pub async fn bytes(db: impl PgExecutor<'_>) -> Result<i64> {
    sqlx::query_scalar("SELECT pg_database_size(current_database())").fetch_one(db).await
}
