//! How the lots of an edition stand. Every statement that changes lots leaves a row with what it
//! changed of their numbers (`migrations/0012_lot_counts.sql`), so nobody has to count them.

use arbiter_proto::ids::EditionId;
use sqlx::{FromRow, PgExecutor, Result};

use super::LotState;

/// Rows of an edition that are worth adding up.
const MANY: i64 = 100;

/// How many lots and matches of an edition are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Census {
    /// The state.
    pub state: LotState,
    /// Lots in it.
    pub lots: i64,
    /// Matches in these.
    pub matches: i64,
}

/// How many lots of an edition are in each state, where there are any.
pub async fn census(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<Census>> {
    let statement = "
        SELECT state, sum(lots)::bigint AS lots, sum(matches)::bigint AS matches
        FROM lot_counts WHERE edition = $1 GROUP BY state HAVING sum(lots) <> 0 ORDER BY state";
    sqlx::query_as(statement).bind(edition).fetch_all(db).await
}

/// Adds up what was left by statements that changed lots of an edition, if that is much. Who counts
/// at the same moment sees it as it was before, or as it is after.
pub async fn add_up(db: impl PgExecutor<'_>, edition: EditionId) -> Result<()> {
    let statement = "
        WITH known AS (
            DELETE FROM lot_counts WHERE edition = $1 AND $2 < (
                SELECT count(*) FROM (
                    SELECT FROM lot_counts WHERE edition = $1 LIMIT $2 + 1
                ) AS few)
            RETURNING state, lots, matches
        )
        INSERT INTO lot_counts (edition, state, lots, matches)
        SELECT $1, state, sum(lots), sum(matches) FROM known
        GROUP BY state HAVING sum(lots) <> 0 OR sum(matches) <> 0";
    sqlx::query(statement).bind(edition).bind(MANY).execute(db).await.map(drop)
}
