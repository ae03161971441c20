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
/// is loaded. Otherwise Postgres would plan statements by the old sizes of the tables. A small
/// sample is enough for these; autovacuum takes a larger one later.
pub async fn analyze(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    // `ANALYZE matches` would read every partition. It would also block the creation of partitions
    // until the end of the transaction.
    let statement = "SELECT tableoid::regclass::text FROM matches WHERE tournament = $1 LIMIT 1";
    let matches: Option<String> =
        sqlx::query_scalar(statement).bind(tournament).fetch_optional(&mut *connection).await?;
    let matches = matches.map(|name| format!(", {name}")).unwrap_or_default();
    let analyze = format!("ANALYZE lots{matches}, lot_order");
    // Statements without parameters that are sent together are one transaction.
    run(connection, format!("SET LOCAL default_statistics_target = 10; {analyze}")).await
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

/// The partition with the matches of a tournament.
pub(super) fn matches_of(tournament: TournamentId) -> String {
    format!("matches_{tournament}")
}

/// Creates the table for the matches of a tournament, if it has partitions and none for matches
/// yet. Returns whether this call did so. [`index_matches`] and [`attach_matches`] complete the
/// table.
pub(super) async fn create_matches(
    connection: &mut PgConnection,
    tournament: TournamentId,
) -> Result<bool> {
    let table = matches_of(tournament);
    let statement = "
        SELECT to_regclass($2) IS NULL AND EXISTS (SELECT FROM partitions WHERE tournament = $1)";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(&table);
    let is_missing: bool = query.fetch_one(&mut *connection).await?;
    if is_missing {
        // With the constraint Postgres attaches the table without reading it.
        let statement = format!(
            "CREATE TABLE {table} (LIKE matches INCLUDING CONSTRAINTS INCLUDING DEFAULTS, \
             CONSTRAINT is_of_tournament CHECK (tournament = {tournament}))"
        );
        run(connection, statement).await?;
    }
    Ok(is_missing)
}

/// Builds the indexes of the matches of a tournament: by number, by seed key and seats, and by
/// entrant. A bot with many versions has many matches with the same seed key.
pub(super) async fn index_matches(
    connection: &mut PgConnection,
    tournament: TournamentId,
) -> Result<()> {
    let table = matches_of(tournament);
    let statement = format!(
        "ALTER TABLE {table} ADD PRIMARY KEY (tournament, number); \
         CREATE INDEX {table}_by_seats ON {table} (hash_array_extended(seats, seed_key)); \
         CREATE INDEX {table}_by_entrant ON {table} USING gin (seats)"
    );
    run(connection, statement).await
}

/// Attaches the matches of a tournament to those of the others, unless they are attached already.
/// Only one transaction at a time can do this, so it should be the last statement of the
/// transaction.
pub async fn attach_matches(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    let table = matches_of(tournament);
    let statement = "
        SELECT NOT relispartition FROM pg_class WHERE oid = to_regclass($1)";
    let is_separate: Option<bool> =
        sqlx::query_scalar(statement).bind(&table).fetch_optional(&mut *connection).await?;
    if is_separate != Some(true) {
        return Ok(());
    }
    let statement = format!(
        "ALTER TABLE matches ATTACH PARTITION {table} FOR VALUES FROM ({tournament}) TO ({}); \
         ALTER TABLE {table} DROP CONSTRAINT is_of_tournament",
        tournament.0 + 1
    );
    run(connection, statement).await
}

/// Runs a statement with trusted names, without preparing it.
async fn run(connection: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}
