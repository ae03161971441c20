//! Tokens: what lets somebody in. Only their hashes are kept.

use arbiter_proto::ids::TokenId;
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
#[sqlx(type_name = "role", rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// Tournaments.
    Organiser,
    /// Bots of its own.
    Player,
    /// To lease and report.
    Worker,
}

/// A token, without what makes it one.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Token {
    /// Its identity.
    #[sqlx(try_from = "i32")]
    pub id: TokenId,
    /// What it allows.
    pub role: Role,
    /// Whom or what it was made for.
    pub name: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
}

/// Keeps the hash of a new token.
///
/// # Errors
/// If the hash is there already, or the database fails.
pub async fn create(
    db: impl PgExecutor<'_>,
    hash: &[u8; 32],
    role: Role,
    name: &str,
    now: OffsetDateTime,
) -> Result<TokenId, Error> {
    let statement =
        "INSERT INTO tokens (hash, role, name, created_at) VALUES ($1, $2, $3, $4) RETURNING id";
    let query = sqlx::query_scalar(statement).bind(hash.as_slice()).bind(role);
    query.bind(name).bind(now).fetch_one(db).await.map(TokenId)
}

/// The token with this hash, unless it was revoked.
///
/// # Errors
/// If the database fails.
pub async fn find(db: impl PgExecutor<'_>, hash: &[u8; 32]) -> Result<Option<Token>, Error> {
    let statement = "
        SELECT id, role, name, created_at, revoked_at FROM tokens
        WHERE hash = $1 AND revoked_at IS NULL";
    sqlx::query_as(statement).bind(hash.as_slice()).fetch_optional(db).await
}

/// All tokens, the oldest first.
///
/// # Errors
/// If the database fails.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<Token>, Error> {
    let statement = "SELECT id, role, name, created_at, revoked_at FROM tokens ORDER BY id";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Revokes a token; whether it was good until now.
///
/// # Errors
/// If the database fails.
pub async fn revoke(
    db: impl PgExecutor<'_>,
    id: TokenId,
    now: OffsetDateTime,
) -> Result<bool, Error> {
    let statement = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    Ok(sqlx::query(statement).bind(id.0).bind(now).execute(db).await?.rows_affected() == 1)
}
