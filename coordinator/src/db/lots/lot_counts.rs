//! The numbers of a tournament's lots by state. Each statement that changes lots adds a row with
//! the changes (`migrations/0001_baseline.sql`), so lots need not be counted.

use arbiter_proto::ids::TournamentId;
use sqlx::{FromRow, PgExecutor, Result};

use super::LotState;

/// The rows of a tournament are merged if there are more than this.
const MAX_ROWS: i64 = 100;

/// The numbers of lots and matches of a tournament in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Census {
    /// The state.
    pub state: LotState,
    /// Number of lots.
    pub lots: i64,
    /// Number of matches in these lots.
    pub matches: i64,
}

/// The numbers of lots of a tournament by state. States without lots are left out.
pub async fn census(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Census>> {
    let statement = "
        SELECT state, sum(lots)::bigint AS lots, sum(matches)::bigint AS matches
        FROM lot_counts WHERE tournament = $1 GROUP BY state HAVING sum(lots) <> 0 ORDER BY state";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// Merges the rows of a tournament if there are many. A concurrent reader sees the rows from before
/// or from after the merge.
pub async fn merge_counts(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<()> {
    let statement = "
        WITH known AS (
            DELETE FROM lot_counts WHERE tournament = $1 AND $2 < (
                SELECT count(*) FROM (
                    SELECT FROM lot_counts WHERE tournament = $1 LIMIT $2 + 1
                ) AS few)
            RETURNING state, lots, matches
        )
        INSERT INTO lot_counts (tournament, state, lots, matches)
        SELECT $1, state, sum(lots), sum(matches) FROM known
        GROUP BY state HAVING sum(lots) <> 0 OR sum(matches) <> 0";
    sqlx::query(statement).bind(tournament).bind(MAX_ROWS).execute(db).await.map(drop)
}
