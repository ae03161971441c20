//! Sessions of the game tricks over HTTP, and their results.

use arbiter_games::Seed;
use arbiter_proto::ids::TokenId;
use sqlx::{Error, FromRow, PgExecutor, PgPool, Result};
use time::OffsetDateTime;

use super::tokens::Role;

/// The holder of a token, with the session of the holder.
#[derive(Clone, Debug)]
pub struct Holder {
    /// Its token.
    pub id: TokenId,
    /// The hash of the token's first secret.
    pub first_hash: Vec<u8>,
    /// The role of the token.
    pub role: Role,
    /// The session, if one exists and has not expired.
    pub session: Option<StoredSession>,
}

/// A stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    /// The seed of the tables.
    pub seed: Seed,
    /// The number of requests with cards that have been processed.
    pub turn: i32,
    /// The cards of each table, in the order of play.
    pub played: Vec<Vec<u8>>,
}

/// The results of a player's finished sessions.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct PlayerRecord {
    /// The player's name.
    pub name: String,
    /// The number of finished sessions.
    pub sessions: i64,
    /// The best result.
    pub best: i32,
    /// The number of tables of that session.
    pub best_tables: i32,
    /// The sum of all results.
    pub total: i64,
    /// The number of victories.
    pub victories: i64,
    /// When the last session ended.
    pub last_at: OffsetDateTime,
}

/// The result of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Tables won minus tables lost.
    pub result: i32,
    /// The number of tables.
    pub tables: i32,
    /// Whether the result is a victory.
    pub victory: bool,
}

/// A row of [`find`].
#[derive(FromRow)]
struct HolderRow {
    id: TokenId,
    first_hash: Vec<u8>,
    role: Role,
    seed: Option<Vec<u8>>,
    turn: Option<i32>,
    played: Option<Vec<Vec<u8>>>,
}

/// The valid token of a secret with this hash, and its session, if the session began after `since`.
pub async fn find(
    db: impl PgExecutor<'_>,
    hash: &[u8; 32],
    since: OffsetDateTime,
    now: OffsetDateTime,
) -> Result<Option<Holder>> {
    let statement = "
        SELECT t.id, coalesce(t.first_hash, t.hash) AS first_hash, t.role, s.seed, s.turn, s.played
        FROM tokens t LEFT JOIN tricks_sessions s ON s.token = t.id AND s.started_at > $2
        WHERE t.id = find_token($1, $3)";
    let query = sqlx::query_as(statement).bind(hash.as_slice()).bind(since).bind(now);
    let row: Option<HolderRow> = query.fetch_optional(db).await?;
    Ok(row.map(|HolderRow { id, first_hash, role, seed, turn, played }| {
        let seed = seed.and_then(|seed| seed.try_into().ok()).map(Seed);
        let session = seed.zip(turn).zip(played);
        let session = session.map(|((seed, turn), played)| StoredSession { seed, turn, played });
        Holder { id, first_hash, role, session }
    }))
}

/// Starts a session. It replaces an earlier session of the token.
pub async fn begin(
    db: impl PgExecutor<'_>,
    token: TokenId,
    session: &StoredSession,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "
        INSERT INTO tricks_sessions (token, seed, started_at, turn, played)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (token) DO UPDATE SET seed = excluded.seed, started_at = excluded.started_at,
            turn = excluded.turn, played = excluded.played";
    let query = sqlx::query(statement).bind(token).bind(session.seed.0.as_slice()).bind(now);
    query.bind(session.turn).bind(&session.played).execute(db).await.map(drop)
}

/// Stores the cards of a request. Returns `false` if another request changed the session meanwhile.
pub async fn store_turn(
    db: impl PgExecutor<'_>,
    token: TokenId,
    session: &StoredSession,
) -> Result<bool> {
    let statement = "
        UPDATE tricks_sessions SET turn = turn + 1, played = $4
        WHERE token = $1 AND seed = $2 AND turn = $3";
    let query = sqlx::query(statement).bind(token).bind(session.seed.0.as_slice());
    let query = query.bind(session.turn).bind(&session.played);
    Ok(query.execute(db).await?.rows_affected() == 1)
}

/// Stores the cards of the last request of a session, and adds the result to the player's record.
/// Returns `false` if another request changed the session meanwhile.
pub async fn end(
    pool: &PgPool,
    token: TokenId,
    session: &StoredSession,
    ending: Ending,
    now: OffsetDateTime,
) -> Result<bool> {
    let mut transaction = pool.begin().await?;
    if !store_turn(&mut *transaction, token, session).await? {
        return Ok(false);
    }
    let statement = "
        INSERT INTO tricks_records AS r
            (token, sessions, best, best_tables, total, victories, last_at)
        VALUES ($1, 1, $2, $3, $2::integer, $4, $5)
        ON CONFLICT (token) DO UPDATE SET
            sessions = r.sessions + 1,
            best = greatest(r.best, excluded.best),
            best_tables = CASE WHEN (excluded.best, -excluded.best_tables) > (r.best, -r.best_tables)
                THEN excluded.best_tables ELSE r.best_tables END,
            total = r.total + excluded.total,
            victories = r.victories + excluded.victories,
            last_at = greatest(r.last_at, excluded.last_at)";
    let query = sqlx::query(statement).bind(token).bind(ending.result).bind(ending.tables);
    let query = query.bind(i64::from(ending.victory)).bind(now);
    query.execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Deletes sessions that began before this time, and returns their number.
pub async fn delete_sessions(db: impl PgExecutor<'_>, before: OffsetDateTime) -> Result<u64> {
    let statement = "DELETE FROM tricks_sessions WHERE started_at <= $1";
    Ok(sqlx::query(statement).bind(before).execute(db).await?.rows_affected())
}

/// The records of all players, best result first, then best mean.
pub async fn records(db: impl PgExecutor<'_>) -> Result<Vec<PlayerRecord>> {
    let statement = "
        SELECT t.name, r.sessions, r.best, r.best_tables, r.total, r.victories, r.last_at
        FROM tricks_records r JOIN tokens t ON t.id = r.token
        ORDER BY r.best DESC, r.total::numeric / r.sessions DESC, t.name, t.id LIMIT 1000";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The key of victory tokens. Stores `new_key` if there is none yet.
pub async fn key(pool: &PgPool, new_key: &[u8; 32]) -> Result<[u8; 32]> {
    let statement = "INSERT INTO tricks_key (key) VALUES ($1) ON CONFLICT DO NOTHING";
    sqlx::query(statement).bind(new_key.as_slice()).execute(pool).await?;
    let key: Vec<u8> = sqlx::query_scalar("SELECT key FROM tricks_key").fetch_one(pool).await?;
    key.try_into().map_err(|_| Error::Decode("a key has 32 bytes".into()))
}

/// The name of a token and the hash of its first secret. The token may be revoked.
pub async fn holder(db: impl PgExecutor<'_>, token: TokenId) -> Result<Option<(String, Vec<u8>)>> {
    let statement = "SELECT name, coalesce(first_hash, hash) FROM tokens WHERE id = $1";
    sqlx::query_as(statement).bind(token).fetch_optional(db).await
}
