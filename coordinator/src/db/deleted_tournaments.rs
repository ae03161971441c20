//! Deleted tournaments: invisible at once. Their rows are removed in the background in small steps.

use arbiter_proto::ids::TournamentId;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

/// A table, and the key column by which its rows are removed in steps.
type KeyedTable = (&'static str, &'static str);

/// The tables with rows of tournaments. The partitioned tables are included for tournaments in the
/// shared partition. Faults are not removed: they are few, and `arbiter_faults_total` must not
/// decrease.
const TOURNAMENT_TABLES: [KeyedTable; 11] = [
    ("records", "number"),
    ("evidence", "number"),
    ("bot_state", "number"),
    ("results", "number"),
    ("absences", "number"),
    ("matches", "number"),
    ("invalidated_matches", "number"),
    ("match_audits", "number"),
    ("lot_order", "before"),
    ("lots", "number"),
    ("lot_counts", "state"),
];

/// The tables with rows of editions.
const EDITION_TABLES: [KeyedTable; 7] = [
    ("worker_residuals", "worker"),
    ("residual_checks", "edition"),
    ("standings", "entrant"),
    ("plan_ranks", "entrant"),
    ("progress", "edition"),
    ("progress_samples", "edition"),
    ("entrants", "entrant"),
];

/// Marks a tournament as deleted. Reports for it are rejected as late from now on. The caller has
/// locked its row.
pub async fn add(
    connection: &mut PgConnection,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "
        UPDATE lots SET state = 'cancelled', deadline = NULL
        WHERE tournament = $1 AND state = 'leased'";
    sqlx::query(statement).bind(tournament).execute(&mut *connection).await?;
    let statement = "
        INSERT INTO deleted_tournaments (tournament, name, at)
        SELECT id, name, $2 FROM tournaments WHERE id = $1";
    sqlx::query(statement).bind(tournament).bind(now).execute(&mut *connection).await?;
    let statement = "UPDATE tournaments SET name = 'dropped.' || gen_random_uuid() WHERE id = $1";
    sqlx::query(statement).bind(tournament).execute(connection).await.map(drop)
}

/// Deleted tournaments that still have rows, with their former names.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<(TournamentId, String)>> {
    let statement = "SELECT tournament, name FROM deleted_tournaments ORDER BY at, tournament";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Tries to take the removal lock, and returns whether this connection has it now.
pub async fn try_lock(db: impl PgExecutor<'_>) -> Result<bool> {
    let statement = "SELECT pg_try_advisory_lock(hashtext('arbiter: clearing away'))";
    sqlx::query_scalar(statement).fetch_one(db).await
}

/// Limits how long each statement of the session may take. While the removal of a partition waits
/// for a transaction, no other partition can be created. The pause between statements may be
/// longer, because the caller then removes objects from the record store.
pub async fn set_timeouts(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "
        SELECT set_config('statement_timeout', '20s', false),
            set_config('lock_timeout', '20s', false),
            set_config('idle_in_transaction_session_timeout', '120s', false)";
    sqlx::query(statement).execute(db).await.map(drop)
}

/// Releases the removal lock. Without this, the server would release it only after it notices the
/// end of the connection.
pub async fn unlock(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "SELECT pg_advisory_unlock(hashtext('arbiter: clearing away'))";
    sqlx::query(statement).execute(db).await.map(drop)
}

/// Removes the rows of a tournament's matches, lots and sums.
pub async fn delete_rows(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    for table in TOURNAMENT_TABLES {
        delete_in_steps(&mut *connection, table, ("tournament", tournament.0)).await?;
    }
    let statement = "SELECT id FROM editions WHERE tournament = $1 ORDER BY id";
    let editions: Vec<i32> =
        sqlx::query_scalar(statement).bind(tournament).fetch_all(&mut *connection).await?;
    for edition in editions {
        for table in EDITION_TABLES {
            delete_in_steps(&mut *connection, table, ("edition", edition)).await?;
        }
    }
    Ok(())
}

/// Removes the rows of a table whose column has this value, a thousand at a time, in the order of
/// the key's index.
async fn delete_in_steps(
    connection: &mut PgConnection,
    (table, key): KeyedTable,
    (column, value): (&str, i32),
) -> Result<()> {
    let statement = format!(
        "DELETE FROM {table} WHERE {column} = $1 AND {key} <= (
            SELECT max({key}) FROM (
                SELECT {key} FROM {table} WHERE {column} = $1 ORDER BY {key} LIMIT 1000
            ) AS few)"
    );
    loop {
        let query = sqlx::query(AssertSqlSafe(statement.clone())).bind(value);
        if query.execute(&mut *connection).await?.rows_affected() == 0 {
            return Ok(());
        }
    }
}

/// Removes unused snapshots among the thousand after this digest. Returns the last examined digest,
/// or `None` at the end.
pub async fn delete_snapshots(
    connection: &mut PgConnection,
    after: &[u8],
) -> Result<Option<Vec<u8>>> {
    let statement = "
        SELECT digest FROM (
            SELECT digest FROM snapshots WHERE digest > $1 ORDER BY digest LIMIT 1000
        ) AS few ORDER BY digest DESC LIMIT 1";
    let last: Option<Vec<u8>> =
        sqlx::query_scalar(statement).bind(after).fetch_optional(&mut *connection).await?;
    let Some(last) = last else { return Ok(None) };
    // A report first stores its references to snapshots, and then the missing snapshots. The lock
    // prevents this statement from running between these two steps.
    let mut transaction = connection.begin().await?;
    let lock = "LOCK TABLE snapshots IN EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *transaction).await?;
    let statement = "
        DELETE FROM snapshots s WHERE digest > $1 AND digest <= $2
          AND NOT EXISTS (SELECT FROM bot_state f WHERE f.digest = s.digest)";
    sqlx::query(statement).bind(after).bind(&last).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(Some(last))
}

/// Removes a tournament after its other rows: its editions, its bots, their versions, the bundles
/// that no other version has, and the tournament.
pub async fn finish(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    let bundles = "
        WITH gone AS (
            SELECT v.id, v.digest FROM versions v JOIN bots b ON b.id = v.bot WHERE b.tournament = $1
        ), tried AS (
            DELETE FROM trials WHERE version IN (SELECT id FROM gone) RETURNING program
        )
        SELECT digest FROM gone UNION SELECT program FROM tried WHERE program IS NOT NULL
        UNION SELECT bundle FROM tournament_packages WHERE tournament = $1";
    let mut transaction = connection.begin().await?;
    let db = &mut *transaction;
    let bundles: Vec<Vec<u8>> =
        sqlx::query_scalar(bundles).bind(tournament).fetch_all(&mut *db).await?;
    for statement in [
        "DELETE FROM edition_triggers WHERE tournament = $1",
        "DELETE FROM trace_contexts WHERE subject = 'edition'
            AND id IN (SELECT id FROM editions WHERE tournament = $1)",
        "DELETE FROM trace_contexts WHERE subject = 'version' AND id IN (
            SELECT v.id FROM versions v JOIN bots b ON b.id = v.bot WHERE b.tournament = $1)",
        "DELETE FROM editions WHERE tournament = $1",
        "DELETE FROM versions WHERE bot IN (SELECT id FROM bots WHERE tournament = $1)",
        "DELETE FROM bots WHERE tournament = $1",
        "DELETE FROM deleted_tournaments WHERE tournament = $1",
        "DELETE FROM tournaments WHERE id = $1",
    ] {
        sqlx::query(statement).bind(tournament).execute(&mut *db).await?;
    }
    let statement = "
        DELETE FROM bundles b WHERE digest = ANY ($1)
          AND NOT EXISTS (SELECT FROM versions v WHERE v.digest = b.digest)
          AND NOT EXISTS (SELECT FROM trials t WHERE t.program = b.digest)
          AND NOT EXISTS (SELECT FROM tournament_packages p WHERE p.bundle = b.digest)";
    sqlx::query(statement).bind(bundles).execute(&mut *db).await?;
    transaction.commit().await
}
