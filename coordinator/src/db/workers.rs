//! Workers that have ever said hello.

use arbiter_proto::ids::WorkerId;
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Worker {
    /// Its identity.
    #[sqlx(try_from = "i32")]
    pub id: WorkerId,
    /// Its name, which no other has.
    pub name: String,
    /// What its sandbox can isolate.
    pub sandbox: String,
    /// Its build.
    pub build: String,
    /// When it last said hello.
    pub seen_at: OffsetDateTime,
}

/// Takes note of a worker that says hello.
///
/// # Errors
/// If the database fails.
pub async fn greet(
    db: impl PgExecutor<'_>,
    name: &str,
    sandbox: &str,
    build: &str,
    now: OffsetDateTime,
) -> Result<WorkerId, Error> {
    let statement = "
        INSERT INTO workers (name, sandbox, build, seen_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE
        SET sandbox = excluded.sandbox, build = excluded.build, seen_at = excluded.seen_at
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(name).bind(sandbox).bind(build).bind(now);
    query.fetch_one(db).await.map(WorkerId)
}

/// Which database this is, for workers that come back.
///
/// # Errors
/// If the database fails.
pub async fn database(db: impl PgExecutor<'_>) -> Result<String, Error> {
    sqlx::query_scalar("SELECT id::text FROM identity").fetch_one(db).await
}

/// All workers, those heard of last first.
///
/// # Errors
/// If the database fails.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<Worker>, Error> {
    sqlx::query_as("SELECT * FROM workers ORDER BY seen_at DESC, id").fetch_all(db).await
}

/// The worker of this name, if it ever said hello.
///
/// # Errors
/// If the database fails.
pub async fn find(db: impl PgExecutor<'_>, name: &str) -> Result<Option<Worker>, Error> {
    let statement = "SELECT * FROM workers WHERE name = $1";
    sqlx::query_as(statement).bind(name).fetch_optional(db).await
}
