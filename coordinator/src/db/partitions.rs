//! The tables with a row for every match are partitioned by tournament
//! (`migrations/0001_baseline.sql`).

use arbiter_proto::ids::TournamentId;
use sqlx::{AssertSqlSafe, PgConnection, PgExecutor, Result};

/// The partitioned tables.
const TABLES: [&str; 6] = ["matches", "absences", "results", "evidence", "records", "bot_state"];

/// Whether a tournament has partitions.
pub async fn exist(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<bool> {
    let statement = "SELECT EXISTS (SELECT FROM partitions WHERE tournament = $1)";
    sqlx::query_scalar(statement).bind(tournament).fetch_one(db).await
}

/// Updates the planner's statistics of the queue's tables for this tournament. Call it after a plan
/// is loaded. Otherwise Postgres would plan statements by the old sizes of the tables.
pub async fn analyze(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    // `ANALYZE matches` would read every partition. It would also block the creation of partitions
    // until the end of the transaction.
    let statement = "SELECT tableoid::regclass::text FROM matches WHERE tournament = $1 LIMIT 1";
    let matches: Option<String> =
        sqlx::query_scalar(statement).bind(tournament).fetch_optional(&mut *connection).await?;
    let matches = matches.map(|name| format!(", {name}")).unwrap_or_default();
    run(connection, format!("ANALYZE lots{matches}, lot_order")).await
}

/// Drops the partitions of a tournament, or continues a removal that was interrupted. Only one
/// caller may do this at a time, outside a transaction. The removal waits for readers and writers
/// of all partitions; they do not wait for the removal.
///
/// # Errors
/// If readers or writers block it for longer than the statement timeout. The caller may retry.
pub async fn drop_partitions(
    connection: &mut PgConnection,
    tournament: TournamentId,
) -> Result<()> {
    let statement = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = to_regclass($1)";
    for table in TABLES {
        let partition = format!("{table}_{tournament}");
        let pending: Option<bool> =
            sqlx::query_scalar(statement).bind(&partition).fetch_optional(&mut *connection).await?;
        if let Some(pending) = pending {
            let mode = if pending { "FINALIZE" } else { "CONCURRENTLY" };
            let detach = format!("ALTER TABLE {table} DETACH PARTITION {partition} {mode}");
            run(&mut *connection, detach).await?;
        }
        run(&mut *connection, format!("DROP TABLE IF EXISTS {partition}")).await?;
    }
    let statement = "DELETE FROM partitions WHERE tournament = $1";
    sqlx::query(statement).bind(tournament).execute(connection).await.map(drop)
}

/// Truncates the records in the partition of a tournament, which frees their disk space at once.
/// Other transactions wait for at most the lock timeout, which is some seconds.
///
/// # Errors
/// If a transaction uses the records for longer than that. The caller may retry.
pub async fn truncate_records(
    connection: &mut PgConnection,
    tournament: TournamentId,
) -> Result<()> {
    run(connection, format!("TRUNCATE records_{tournament}")).await
}

/// Creates the index by seed key and seats of a tournament's matches, after those of its first
/// edition. Tournaments in the shared partition use that of the partition. A bot with many versions
/// has many matches with the same seed key.
pub async fn index_matches(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    if !exist(&mut *connection, tournament).await? {
        return Ok(());
    }
    let statement = format!(
        "CREATE INDEX IF NOT EXISTS matches_{tournament}_by_seats ON matches_{tournament} \
         (hash_array_extended(seats, seed_key))"
    );
    run(connection, statement).await
}

/// Runs a statement with trusted names, without preparing it.
async fn run(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}
