//! Shelves: what was planned and played in a tournament, in partitions of its own of the tables
//! that have a row for every match (`migrations/0003_shelves.sql`).

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{AssertSqlSafe, PgConnection, PgExecutor, Result};

/// The tables that are cut up.
const TABLES: [&str; 5] = ["matches", "results", "evidence", "records", "bot_state"];

/// The shelves of a tournament, by the first edition that they have room for.
pub async fn of_tournament(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<i32>> {
    let statement =
        "SELECT first_edition FROM partitions WHERE tournament = $1 ORDER BY first_edition";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// Tells the planner what the tables of the queue look like with this edition: due after a plan is
/// loaded, or statements would be planned for the tables as they were.
pub async fn analyze(connection: &mut PgConnection, edition: EditionId) -> Result<()> {
    // The whole table would be read shelf by shelf, and no shelf could be made until the end of the
    // transaction.
    let statement = "SELECT tableoid::regclass::text FROM matches WHERE edition = $1 LIMIT 1";
    let matches: Option<String> =
        sqlx::query_scalar(statement).bind(edition).fetch_optional(&mut *connection).await?;
    let matches = matches.map(|name| format!(", {name}")).unwrap_or_default();
    run(connection, format!("ANALYZE lots{matches}, lot_order")).await
}

/// Throws a shelf away with everything on it, from wherever somebody stopped who began to. Nobody
/// else may do so at the same time, nor be in a transaction here: who reads or writes other shelves
/// is waited for, and does not wait.
///
/// # Errors
/// If the database fails, or somebody reads or writes for longer than a statement may take: then
/// it is to be tried again.
pub async fn take_down(connection: &mut PgConnection, first: i32) -> Result<()> {
    let statement = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass($1)";
    for table in TABLES {
        let shelf = format!("{table}_{first}");
        let pending: Option<bool> =
            sqlx::query_scalar(statement).bind(&shelf).fetch_optional(&mut *connection).await?;
        if let Some(pending) = pending {
            let how = if pending { "FINALIZE" } else { "CONCURRENTLY" };
            let detach = format!("ALTER TABLE {table} DETACH PARTITION {shelf} {how}");
            run(&mut *connection, detach).await?;
        }
        run(&mut *connection, format!("DROP TABLE IF EXISTS {shelf}")).await?;
    }
    let statement = "DELETE FROM partitions WHERE first_edition = $1";
    sqlx::query(statement).bind(first).execute(connection).await.map(drop)
}

/// Empties the records of a shelf, and gives their room back to the file system at once. Others wait
/// for no longer than this does for them, which is seconds.
///
/// # Errors
/// If the records are read or written for so long, or the database fails: then it is to be tried again.
pub async fn forget_records(connection: &mut PgConnection, first: i32) -> Result<()> {
    run(connection, format!("TRUNCATE records_{first}")).await
}

/// Runs a statement whose names are ours: it is not worth a place among those that are prepared.
async fn run(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}
