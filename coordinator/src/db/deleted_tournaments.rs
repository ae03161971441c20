//! Tournaments that were dropped: gone for everybody at once, cleared away bit by bit.

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

/// What is left of a tournament beside its shelves, edition by edition: the tables, and by which
/// column of its key a bit is cut off. Those of shelves are among them for tournaments without one.
/// Faults stay: they are few, and those who count them (`arbiter_faults_total`) would be alarmed.
const ROWS: [(&str, &str); 17] = [
    ("records", "number"),
    ("evidence", "number"),
    ("bot_state", "number"),
    ("results", "number"),
    ("matches", "number"),
    ("invalidated_matches", "number"),
    ("match_audits", "number"),
    ("worker_residuals", "worker"),
    ("residual_checks", "edition"),
    ("pending_reuse", "number"),
    ("lot_order", "before"),
    ("lots", "number"),
    ("lot_counts", "state"),
    ("standings", "entrant"),
    ("progress", "edition"),
    ("progress_samples", "edition"),
    ("entrants", "entrant"),
];

/// Lets a tournament disappear. Reports of what is still being played in it are late from now on.
/// Its row is locked by the caller.
pub async fn add(
    connection: &mut PgConnection,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "
        UPDATE lots AS l SET state = 'cancelled', deadline = NULL
        FROM editions e
        WHERE e.tournament = $1 AND l.edition = e.id AND l.state = 'leased'";
    sqlx::query(statement).bind(tournament).execute(&mut *connection).await?;
    let statement = "
        INSERT INTO deleted_tournaments (tournament, name, at)
        SELECT id, name, $2 FROM tournaments WHERE id = $1";
    sqlx::query(statement).bind(tournament).bind(now).execute(&mut *connection).await?;
    let statement = "UPDATE tournaments SET name = 'dropped.' || gen_random_uuid() WHERE id = $1";
    sqlx::query(statement).bind(tournament).execute(connection).await.map(drop)
}

/// Tournaments that are not cleared away yet, with the names they had.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<(TournamentId, String)>> {
    let statement = "SELECT tournament, name FROM deleted_tournaments ORDER BY at, tournament";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Becomes the only one who clears away, for as long as the connection lasts; whether nobody else
/// is.
pub async fn claim(db: impl PgExecutor<'_>) -> Result<bool> {
    let statement = "SELECT pg_try_advisory_lock(hashtext('arbiter: clearing away'))";
    sqlx::query_scalar(statement).fetch_one(db).await
}

/// Limits how long each statement of the session may take: where a shelf waits for a transaction to
/// end, no other shelf can be made. Between statements objects are removed, which takes longer.
pub async fn set_timeouts(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "
        SELECT set_config('statement_timeout', '20s', false),
            set_config('lock_timeout', '20s', false),
            set_config('idle_in_transaction_session_timeout', '120s', false)";
    sqlx::query(statement).execute(db).await.map(drop)
}

/// Lets the next one clear away, at once: the end of a connection is noticed in its own time.
pub async fn release(db: impl PgExecutor<'_>) -> Result<()> {
    let statement = "SELECT pg_advisory_unlock(hashtext('arbiter: clearing away'))";
    sqlx::query(statement).execute(db).await.map(drop)
}

/// The editions of a tournament, also those of which a part was taken away already.
pub async fn editions(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<EditionId>> {
    let statement = "SELECT id FROM editions WHERE tournament = $1 ORDER BY id";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// Takes away the rows of an edition that belong to its matches, lots and sums, a thousand at a
/// time, as they lie in the index of the key.
pub async fn clear_edition(connection: &mut PgConnection, edition: EditionId) -> Result<()> {
    for (table, key) in ROWS {
        let statement = format!(
            "DELETE FROM {table} WHERE edition = $1 AND {key} <= (
                SELECT max({key}) FROM (
                    SELECT {key} FROM {table} WHERE edition = $1 ORDER BY {key} LIMIT 1000
                ) AS few)"
        );
        loop {
            let some = sqlx::query(AssertSqlSafe(statement.clone())).bind(edition);
            if some.execute(&mut *connection).await?.rows_affected() == 0 {
                break;
            }
        }
    }
    Ok(())
}

/// Takes away what bots left and no match names any more, of a thousand snapshots after this one;
/// returns the last of them, or nothing after the last of all.
pub async fn clear_snapshots(
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
    // Whoever stores a report names snapshots first, and stores then those that are not there. With
    // the table locked nobody is between the two, and whoever comes then looks again.
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

/// Takes away what is left of a tournament of which nothing was played any more: its bots, their
/// versions, the bundles that no other version has, and itself.
pub async fn finish(connection: &mut PgConnection, tournament: TournamentId) -> Result<()> {
    let bundles = "
        WITH gone AS (
            SELECT v.id, v.digest FROM versions v JOIN bots b ON b.id = v.bot WHERE b.tournament = $1
        ), tried AS (
            DELETE FROM trials WHERE version IN (SELECT id FROM gone) RETURNING program
        )
        SELECT digest FROM gone UNION SELECT program FROM tried WHERE program IS NOT NULL";
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
          AND NOT EXISTS (SELECT FROM trials t WHERE t.program = b.digest)";
    sqlx::query(statement).bind(bundles).execute(&mut *db).await?;
    transaction.commit().await
}
