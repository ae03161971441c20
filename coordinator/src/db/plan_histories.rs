//! How the participants of editions changed, where plans are incremental.

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{PgExecutor, Result};

/// Stores the plan history of an edition.
pub async fn set(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    plan_history: &serde_json::Value,
) -> Result<()> {
    let statement = "UPDATE editions SET plan_history = $2 WHERE id = $1";
    sqlx::query(statement).bind(edition).bind(plan_history).execute(db).await.map(drop)
}

/// The plan history of an edition, if it is stored.
pub async fn of_edition(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Option<serde_json::Value>> {
    let statement = "SELECT plan_history FROM editions WHERE id = $1";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
}

/// The plan history of the newest edition of a tournament, if it is stored.
pub async fn of_newest(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Option<serde_json::Value>> {
    let statement = "
        SELECT plan_history FROM editions WHERE tournament = $1 ORDER BY number DESC LIMIT 1";
    let row = sqlx::query_scalar(statement).bind(tournament).fetch_optional(db).await?;
    Ok(row.flatten())
}
