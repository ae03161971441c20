//! Suspended workers: they get no leases, and their reports are rejected.

use arbiter_proto::ids::WorkerId;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

/// A suspension of a worker.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Suspension {
    /// The worker.
    pub worker: WorkerId,
    /// When it was suspended.
    pub at: OffsetDateTime,
    /// The reason.
    pub reason: String,
}

/// Suspends a worker, and returns its name. Returns `None` if it is already suspended.
pub async fn suspend(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<Option<String>> {
    let statement = "
        INSERT INTO suspensions AS s (worker, at, reason) VALUES ($1, $3, left($2, 4000))
        ON CONFLICT (worker) DO UPDATE
        SET at = excluded.at, reason = excluded.reason, reinstated_at = NULL
        WHERE s.reinstated_at IS NOT NULL
        RETURNING (SELECT name FROM workers w WHERE w.id = s.worker)";
    let query = sqlx::query_scalar(statement).bind(worker).bind(reason).bind(now);
    query.fetch_optional(db).await
}

/// Reinstates a suspended worker, and returns the reason of its suspension. Returns `None` if it is
/// not suspended.
pub async fn reinstate(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    now: OffsetDateTime,
) -> Result<Option<String>> {
    let statement = "
        UPDATE suspensions SET reinstated_at = greatest(at, $2)
        WHERE worker = $1 AND reinstated_at IS NULL RETURNING reason";
    sqlx::query_scalar(statement).bind(worker).bind(now).fetch_optional(db).await
}

/// The workers that are suspended.
pub async fn all(db: impl PgExecutor<'_>) -> Result<Vec<Suspension>> {
    let statement = "
        SELECT worker, at, reason FROM suspensions WHERE reinstated_at IS NULL ORDER BY worker";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The reason of a worker's suspension, if it is suspended. A worker that connects for the first
/// time is also suspended if another worker of its token is. So a new name does not end a
/// suspension.
pub async fn reason(db: impl PgExecutor<'_>, worker: WorkerId) -> Result<Option<String>> {
    let statement = "
        SELECT s.reason FROM workers w
        JOIN worker_tokens o ON o.worker = w.id
        JOIN worker_tokens other ON other.token = o.token
        JOIN suspensions s ON s.worker = other.worker
        WHERE w.id = $1 AND s.reinstated_at IS NULL AND (s.worker = w.id OR w.session = 0)
        ORDER BY s.worker = w.id DESC LIMIT 1";
    sqlx::query_scalar(statement).bind(worker).fetch_optional(db).await
}
