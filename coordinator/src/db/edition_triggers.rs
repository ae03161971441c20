//! Changes that make an edition due: a version entered, a bot was withdrawn, or a match became
//! void.

use arbiter_proto::ids::TournamentId;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

/// A change that no edition includes yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Change {
    /// Its number.
    pub id: i64,
    /// When it happened.
    pub at: OffsetDateTime,
}

/// Records a change.
pub async fn add(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "INSERT INTO edition_triggers (tournament, at) VALUES ($1, $2)";
    sqlx::query(statement).bind(tournament).bind(now).execute(db).await.map(drop)
}

/// The changes of a tournament that no edition includes yet, oldest first.
pub async fn of_tournament(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<Change>> {
    let statement = "SELECT id, at FROM edition_triggers WHERE tournament = $1 ORDER BY at, id";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// The open tournaments that have such changes and at least one edition.
pub async fn tournaments(db: impl PgExecutor<'_>) -> Result<Vec<TournamentId>> {
    let statement = "
        SELECT t.id FROM tournaments t
        WHERE t.state = 'open' AND t.id IN (SELECT tournament FROM edition_triggers)
          AND EXISTS (SELECT FROM editions e WHERE e.tournament = t.id)
        ORDER BY t.id";
    sqlx::query_scalar(statement).fetch_all(db).await
}

/// Deletes changes that an edition includes now.
pub async fn delete(db: impl PgExecutor<'_>, changes: &[Change]) -> Result<()> {
    let ids: Vec<_> = changes.iter().map(|change| change.id).collect();
    sqlx::query("DELETE FROM edition_triggers WHERE id = ANY ($1)")
        .bind(ids)
        .execute(db)
        .await
        .map(drop)
}
