//! The tables with a row for every match are partitioned by tournament
//! (`migrations/0001_baseline.sql`).

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{AssertSqlSafe, PgConnection, PgExecutor, Result};

/// The partitioned tables.
const TABLES: [&str; 5] = ["matches", "results", "evidence", "records", "bot_state"];

/// The partitions of a tournament, each named by the first edition id of its range.
pub async fn of_tournament(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<i32>> {
    let statement =
        "SELECT first_edition FROM partitions WHERE tournament = $1 ORDER BY first_edition";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// Updates the planner's statistics of the queue's tables for this edition. Call it after a plan is
/// loaded. Otherwise Postgres would plan statements by the old sizes of the tables.
pub async fn analyze(connection: &mut PgConnection, edition: EditionId) -> Result<()> {
    // `ANALYZE matches` would read every partition. It would also block the creation of partitions
    // until the end of the transaction.
    let statement = "SELECT tableoid::regclass::text FROM matches WHERE edition = $1 LIMIT 1";
    let matches: Option<String> =
        sqlx::query_scalar(statement).bind(edition).fetch_optional(&mut *connection).await?;
    let matches = matches.map(|name| format!(", {name}")).unwrap_or_default();
    run(connection, format!("ANALYZE lots{matches}, lot_order")).await
}

/// Drops the partitions of this range, or continues a removal that was interrupted. Only one caller
/// may do this at a time, outside a transaction. The removal waits for readers and writers of all
/// partitions; they do not wait for the removal.
///
/// # Errors
/// If readers or writers block it for longer than the statement timeout. The caller may retry.
pub async fn drop_partitions(connection: &mut PgConnection, first: i32) -> Result<()> {
    let statement = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass($1)";
    for table in TABLES {
        let partition = format!("{table}_{first}");
        let pending: Option<bool> =
            sqlx::query_scalar(statement).bind(&partition).fetch_optional(&mut *connection).await?;
        if let Some(pending) = pending {
            let mode = if pending { "FINALIZE" } else { "CONCURRENTLY" };
            let detach = format!("ALTER TABLE {table} DETACH PARTITION {partition} {mode}");
            run(&mut *connection, detach).await?;
        }
        run(&mut *connection, format!("DROP TABLE IF EXISTS {partition}")).await?;
    }
    let statement = "DELETE FROM partitions WHERE first_edition = $1";
    sqlx::query(statement).bind(first).execute(connection).await.map(drop)
}

/// Truncates the records of a partition, which frees their disk space at once. Other transactions
/// wait for at most the lock timeout, which is some seconds.
///
/// # Errors
/// If a transaction uses the records for longer than that. The caller may retry.
pub async fn truncate_records(connection: &mut PgConnection, first: i32) -> Result<()> {
    run(connection, format!("TRUNCATE records_{first}")).await
}

/// Runs a statement with trusted names, without preparing it.
async fn run(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}
