//! The ranks that follow from the plans of editions whose rounds depend on results.

use std::collections::BTreeMap;

use arbiter_proto::ids::EditionId;
use arbiter_ranking::Entrant;
use sqlx::{PgExecutor, Result};

/// Stores the rank of each entrant of an edition.
pub async fn set(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    ranks: &BTreeMap<Entrant, u32>,
) -> Result<()> {
    let statement = "
        INSERT INTO plan_ranks AS p (edition, entrant, rank)
        SELECT $1, u.entrant, u.rank FROM unnest($2::int[], $3::int[]) AS u (entrant, rank)
        ORDER BY u.entrant
        ON CONFLICT (edition, entrant) DO UPDATE SET rank = excluded.rank
        WHERE p.rank <> excluded.rank";
    let entrants: Vec<_> = ranks.keys().map(|entrant| entrant.0).collect();
    let ranks: Vec<_> = ranks.values().map(|rank| to_column(*rank)).collect();
    let query = sqlx::query(statement).bind(edition).bind(entrants).bind(ranks);
    query.execute(db).await.map(drop)
}

/// A rank as its column has it. An edition has at most 65536 bots.
fn to_column(rank: u32) -> i32 {
    i32::try_from(rank).unwrap_or(i32::MAX)
}

/// The ranks of an edition, by entrant. Empty if its leaderboard follows from sums alone.
pub async fn of_edition(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<BTreeMap<Entrant, u32>> {
    let statement = "SELECT entrant, rank FROM plan_ranks WHERE edition = $1";
    let rows: Vec<(i32, i32)> = sqlx::query_as(statement).bind(edition).fetch_all(db).await?;
    let rank = |(entrant, rank): (i32, i32)| (Entrant(entrant), rank.unsigned_abs());
    Ok(rows.into_iter().map(rank).collect())
}
