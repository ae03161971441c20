//! The game packages of tournaments, and the settings of editions with earlier packages.

use arbiter_proto::ids::TournamentId;
use arbiter_proto::settings::HexDigest;
use serde_json::Value;
use sqlx::{PgConnection, PgExecutor, Result};

use super::editions;

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

/// The bundle of the package with this digest that a tournament uses or that one of its editions
/// used. If bundles differ in texts and bots only, the present one, or else the newest.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    digest: HexDigest,
) -> Result<Option<[u8; 32]>> {
    let statement = "
        SELECT p.bundle FROM (
            SELECT settings -> 'package' AS package, NULL AS edition
            FROM tournaments WHERE id = $1
            UNION ALL
            SELECT s.settings -> 'package', e.number
            FROM edition_settings s JOIN editions e ON e.id = s.edition WHERE e.tournament = $1
        ) AS used
        JOIN tournament_packages p
            ON p.tournament = $1 AND encode(p.bundle, 'hex') = used.package ->> 'bundle'
        WHERE used.package ->> 'digest' = $2 ORDER BY used.edition DESC NULLS FIRST LIMIT 1";
    sqlx::query_scalar(statement).bind(tournament).bind(digest.to_string()).fetch_optional(db).await
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
    editions::keep_settings(&mut *db, tournament).await?;
    let statement = "UPDATE tournaments SET settings = $2 WHERE id = $1";
    sqlx::query(statement).bind(tournament).bind(settings).execute(db).await.map(drop)
}
