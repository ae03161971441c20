//! The game packages of tournaments, and the settings of editions with earlier packages.

use arbiter_proto::ids::TournamentId;
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, Result};

/// Adds a stored bundle to the packages of a tournament.
pub async fn add(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    bundle: &[u8; 32],
) -> Result<()> {
    let statement = "
        INSERT INTO tournament_packages (tournament, bundle) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sqlx::query(statement).bind(tournament).bind(bundle.as_slice()).execute(db).await.map(drop)
}

/// Whether a tournament uses or used this package.
pub async fn exists(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    bundle: &[u8; 32],
) -> Result<bool> {
    let statement = "
        SELECT EXISTS (SELECT FROM tournament_packages WHERE tournament = $1 AND bundle = $2)";
    sqlx::query_scalar(statement).bind(tournament).bind(bundle.as_slice()).fetch_one(db).await
}

/// Whether a bundle is the package of any tournament.
pub async fn is_package(db: impl PgExecutor<'_>, bundle: &[u8; 32]) -> Result<bool> {
    let statement = "SELECT EXISTS (SELECT FROM tournament_packages WHERE bundle = $1)";
    sqlx::query_scalar(statement).bind(bundle.as_slice()).fetch_one(db).await
}

/// Replaces the settings of a tournament for later editions. Its editions keep theirs.
pub async fn replace_settings(
    db: &mut PgConnection,
    tournament: TournamentId,
    settings: &Value,
) -> Result<()> {
    let statement = "
        INSERT INTO edition_settings (edition, settings)
        SELECT e.id, t.settings FROM editions e JOIN tournaments t ON t.id = e.tournament
        WHERE t.id = $1 ON CONFLICT DO NOTHING";
    sqlx::query(statement).bind(tournament).execute(&mut *db).await?;
    let statement = "UPDATE tournaments SET settings = $2 WHERE id = $1";
    sqlx::query(statement).bind(tournament).bind(settings).execute(db).await.map(drop)
}
