//! The workers that have ever connected.

use arbiter_proto::ids::{TokenId, WorkerId};
use sqlx::{FromRow, PgExecutor, PgPool, Result};
use time::OffsetDateTime;

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Worker {
    /// Its identity.
    pub id: WorkerId,
    /// Its name, which is unique.
    pub name: String,
    /// The level of its sandbox.
    pub sandbox: String,
    /// The build of its program.
    pub build: String,
    /// Its number of slots, by its last message.
    pub slots: i32,
    /// When it was last known to be connected.
    pub seen_at: OffsetDateTime,
}

/// Registers a worker that connects with a token. Returns `None` if its name belongs to another
/// valid token, or differs from another worker's name only in upper and lower case.
pub async fn register(
    pool: &PgPool,
    token: TokenId,
    name: &str,
    sandbox: &str,
    build: &str,
    now: OffsetDateTime,
) -> Result<Option<WorkerId>> {
    let mut transaction = pool.begin().await?;
    let statement = "
        INSERT INTO workers (name, sandbox, build, seen_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE
        SET sandbox = excluded.sandbox, build = excluded.build, seen_at = excluded.seen_at
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(name).bind(sandbox).bind(build).bind(now);
    let worker: i32 = query.fetch_one(&mut *transaction).await?;
    let statement = "
        SELECT EXISTS (SELECT FROM workers WHERE lower(name) = lower($1) AND name <> $1)";
    if sqlx::query_scalar(statement).bind(name).fetch_one(&mut *transaction).await? {
        return Ok(None);
    }
    // If two tokens use a new name at the same time, the row lock makes the second wait. Then it
    // finds the name of the first.
    let statement = "
        INSERT INTO worker_tokens AS o (worker, token) VALUES ($1, $2)
        ON CONFLICT (worker) DO UPDATE SET token = excluded.token, revoked = false
        WHERE o.token = excluded.token OR EXISTS (
            SELECT FROM tokens t
            WHERE t.id = o.token AND (t.revoked_at IS NOT NULL OR t.expires_at <= $3))
        RETURNING o.worker";
    let query = sqlx::query_scalar(statement).bind(worker).bind(token).bind(now);
    let owner: Option<i32> = query.fetch_optional(&mut *transaction).await?;
    if owner.is_none() {
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(WorkerId(worker)))
}

/// The token that a worker's name belongs to. Upper and lower case are equal.
pub async fn owner(db: impl PgExecutor<'_>, name: &str) -> Result<Option<TokenId>> {
    let statement = "
        SELECT o.token FROM workers w JOIN worker_tokens o ON o.worker = w.id
        WHERE lower(w.name) = lower($1) ORDER BY w.name = $1 DESC LIMIT 1";
    sqlx::query_scalar(statement).bind(name).fetch_optional(db).await
}

/// Records a stream that a worker opened, and its number of slots. Returns the number of the
/// stream.
pub async fn connect(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    slots: u32,
    now: OffsetDateTime,
) -> Result<i32> {
    let statement = "
        UPDATE workers SET slots = $2, session = session + 1, seen_at = $3
        WHERE id = $1 RETURNING session";
    let slots = i32::try_from(slots).unwrap_or(i32::MAX);
    sqlx::query_scalar(statement).bind(worker).bind(slots).bind(now).fetch_one(db).await
}

/// Records that a worker is still connected.
pub async fn record_contact(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "UPDATE workers SET seen_at = $2 WHERE id = $1";
    sqlx::query(statement).bind(worker).bind(now).execute(db).await.map(drop)
}

/// Records that a stream ended. The worker is disconnected if it was the newest stream.
pub async fn disconnect(db: impl PgExecutor<'_>, worker: WorkerId, session: i32) -> Result<()> {
    let statement = "UPDATE workers SET slots = 0 WHERE id = $1 AND session = $2";
    sqlx::query(statement).bind(worker).bind(session).execute(db).await.map(drop)
}

/// The number of slots of the workers that were connected since `since`.
pub async fn slots(db: impl PgExecutor<'_>, since: OffsetDateTime) -> Result<u32> {
    let statement = "
        SELECT coalesce(sum(slots::bigint), 0)::bigint FROM workers WHERE seen_at >= $1";
    let slots: i64 = sqlx::query_scalar(statement).bind(since).fetch_one(db).await?;
    Ok(u32::try_from(slots).unwrap_or(u32::MAX))
}

/// The identity of this database, for workers that reconnect.
pub async fn database(db: impl PgExecutor<'_>) -> Result<String> {
    sqlx::query_scalar("SELECT id::text FROM installation").fetch_one(db).await
}

/// All workers, most recently connected first.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<Worker>> {
    sqlx::query_as("SELECT * FROM workers ORDER BY seen_at DESC, id").fetch_all(db).await
}

/// The worker with this name, if it has ever connected.
pub async fn find(db: impl PgExecutor<'_>, name: &str) -> Result<Option<Worker>> {
    let statement = "SELECT * FROM workers WHERE name = $1";
    sqlx::query_as(statement).bind(name).fetch_optional(db).await
}

/// The workers of the tokens with this name, in the order of their names.
pub async fn of_token(db: impl PgExecutor<'_>, token_name: &str) -> Result<Vec<Worker>> {
    let statement = "
        SELECT w.* FROM workers w
        JOIN worker_tokens o ON o.worker = w.id JOIN tokens t ON t.id = o.token
        WHERE t.name = $1 ORDER BY w.name";
    sqlx::query_as(statement).bind(token_name).fetch_all(db).await
}
