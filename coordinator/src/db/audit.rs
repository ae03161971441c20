//! Who changed what.

use arbiter_proto::ids::TokenId;
use serde_json::Value;
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// A change.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Change {
    /// When.
    pub at: OffsetDateTime,
    /// With which token; without one, it was the program itself.
    pub token: Option<i32>,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// What else is worth knowing.
    pub detail: Option<Value>,
}

/// Writes a change down.
///
/// # Errors
/// If the database fails.
pub async fn write(
    db: impl PgExecutor<'_>,
    token: Option<TokenId>,
    action: &str,
    subject: &str,
    detail: Option<&Value>,
    now: OffsetDateTime,
) -> Result<(), Error> {
    let statement =
        "INSERT INTO audit (token, action, subject, detail, at) VALUES ($1, $2, $3, $4, $5)";
    let query = sqlx::query(statement).bind(token.map(|token| token.0)).bind(action);
    query.bind(subject).bind(detail).bind(now).execute(db).await.map(drop)
}

/// The latest changes, the newest first: at most 1000 of them.
///
/// # Errors
/// If the database fails.
pub async fn latest(db: impl PgExecutor<'_>) -> Result<Vec<Change>, Error> {
    let statement =
        "SELECT at, token, action, subject, detail FROM audit ORDER BY id DESC LIMIT 1000";
    sqlx::query_as(statement).fetch_all(db).await
}
