//! Tokens, which authenticate callers. Only the hashes of their secrets are stored.
//!
//! When the secret of a token changes, the bots, the name and the role of the token stay. The
//! previous secret stays valid for a while, so that programs can use it until they get the new
//! secret (see `find_token` in the migrations).

use arbiter_games::string_enum;
use arbiter_proto::ids::{TokenId, WorkerId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

use super::leases::{self, Kind};

string_enum! {
    /// The role of a token: what its holder may do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
    #[sqlx(type_name = "role", rename_all = "lowercase")]
    pub enum Role {
        /// Do everything.
        Admin = "admin",
        /// Manage tournaments.
        Organiser = "organiser",
        /// Submit and manage bots.
        Player = "player",
        /// Lease work and report results.
        Worker = "worker",
    }
    FromStr, Err = UnknownRole
}

/// A text that is not a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown role `{0}`: use admin, organiser, player or worker")]
pub struct UnknownRole(pub String);

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Token {
    /// Its identity.
    pub id: TokenId,
    /// Its role.
    pub role: Role,
    /// The name of its holder or its purpose.
    pub name: String,
    /// When it was created.
    pub created_at: OffsetDateTime,
    /// When it was revoked.
    pub revoked_at: Option<OffsetDateTime>,
    /// When it expires.
    pub expires_at: Option<OffsetDateTime>,
    /// When it was last used, to within some minutes.
    pub used_at: Option<OffsetDateTime>,
    /// The time until which its previous secret stays valid.
    pub previous_valid_until: Option<OffsetDateTime>,
    /// With which the names of its bots begin. Tokens of players get one.
    pub handle: Option<String>,
}

impl Token {
    /// Whether it is valid.
    pub fn is_valid(&self, now: OffsetDateTime) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Stores the hash of a new token.
///
/// # Errors
/// If it expires before its creation.
pub async fn create(
    db: impl PgExecutor<'_>,
    hash: &[u8; 32],
    role: Role,
    name: &str,
    expires_at: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<TokenId> {
    let statement = "
        INSERT INTO tokens (hash, role, name, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
        RETURNING id";
    let query = sqlx::query_scalar(statement).bind(hash.as_slice()).bind(role);
    query.bind(name).bind(now).bind(expires_at).fetch_one(db).await
}

/// A statement that selects tokens.
macro_rules! tokens {
    ($rest:literal) => {
        concat!(
            "SELECT id, role, name, created_at, revoked_at, expires_at, used_at, previous_valid_until,
                handle
            FROM tokens ",
            $rest
        )
    };
}

/// The token with this secret's hash, if it is valid now.
pub async fn find(
    db: impl PgExecutor<'_>,
    hash: &[u8; 32],
    now: OffsetDateTime,
) -> Result<Option<Token>> {
    let statement = tokens!("WHERE id = find_token($1, $2)");
    sqlx::query_as(statement).bind(hash.as_slice()).bind(now).fetch_optional(db).await
}

/// The token with this identity, valid or not.
pub async fn get(db: impl PgExecutor<'_>, id: TokenId) -> Result<Option<Token>> {
    let statement = tokens!("WHERE id = $1");
    sqlx::query_as(statement).bind(id).fetch_optional(db).await
}

/// The handle of a token, which begins the names of its bots. `None` if it has none yet.
pub async fn handle(db: impl PgExecutor<'_>, id: TokenId) -> Result<Option<String>> {
    let statement = "SELECT handle FROM tokens WHERE id = $1";
    sqlx::query_scalar(statement).bind(id).fetch_one(db).await
}

/// The handles that begin with a text.
pub async fn handles_from(db: impl PgExecutor<'_>, start: &str) -> Result<Vec<String>> {
    let statement = "SELECT handle FROM tokens WHERE starts_with(handle, $1)";
    sqlx::query_scalar(statement).bind(start).fetch_all(db).await
}

/// Gives a token its handle.
///
/// # Errors
/// If the handle is invalid, or another token has it.
pub async fn set_handle(db: impl PgExecutor<'_>, id: TokenId, handle: &str) -> Result<()> {
    let statement = "UPDATE tokens SET handle = $2 WHERE id = $1";
    sqlx::query(statement).bind(id).bind(handle).execute(db).await.map(drop)
}

/// All tokens, oldest first.
pub async fn list(db: impl PgExecutor<'_>) -> Result<Vec<Token>> {
    sqlx::query_as(tokens!("ORDER BY id")).fetch_all(db).await
}

/// Locks the names of tokens until the transaction ends. Waits while another transaction holds the
/// lock.
pub async fn lock_names(db: &mut PgConnection) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock($1, 0)";
    sqlx::query(statement).bind(NAME_LOCK).execute(db).await.map(drop)
}

/// The class of the advisory lock of names.
const NAME_LOCK: i32 = 0x6e61_6d65;

/// The valid tokens, oldest first.
pub async fn valid(db: impl PgExecutor<'_>, now: OffsetDateTime) -> Result<Vec<Token>> {
    let statement =
        tokens!("WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY id");
    sqlx::query_as(statement).bind(now).fetch_all(db).await
}

/// Records that a token was used, unless a use was recorded after `before`.
pub async fn record_use(
    db: impl PgExecutor<'_>,
    id: TokenId,
    before: OffsetDateTime,
    now: OffsetDateTime,
) -> Result<()> {
    let statement = "
        UPDATE tokens SET used_at = $3 WHERE id = $1 AND (used_at IS NULL OR used_at <= $2)";
    sqlx::query(statement).bind(id).bind(before).bind(now).execute(db).await.map(drop)
}

/// Gives a token a new secret. The current secret stays valid until `until`; with `None` it becomes
/// invalid at once. Earlier secrets become invalid. Returns whether the token exists and is not
/// revoked.
pub async fn rotate(
    db: impl PgExecutor<'_>,
    id: TokenId,
    hash: &[u8; 32],
    until: Option<OffsetDateTime>,
) -> Result<bool> {
    let statement = "
        UPDATE tokens SET hash = $2, first_hash = coalesce(first_hash, hash),
            previous_hash = CASE WHEN $3::timestamptz IS NOT NULL THEN hash END, previous_valid_until = $3
        WHERE id = $1 AND revoked_at IS NULL";
    let query = sqlx::query(statement).bind(id).bind(hash.as_slice()).bind(until);
    Ok(query.execute(db).await?.rows_affected() == 1)
}

/// Revokes a token, in the caller's transaction. Returns whether it was valid until now.
///
/// After the commit no report of its workers is accepted. Their leases return to the queue without
/// a fault. The revocation waits for a report that is being stored, so a search that begins after
/// the commit finds that report.
pub async fn revoke(db: &mut PgConnection, id: TokenId, now: OffsetDateTime) -> Result<bool> {
    let statement = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    if sqlx::query(statement).bind(id).bind(now).execute(&mut *db).await?.rows_affected() == 0 {
        return Ok(false);
    }
    let statement = "UPDATE worker_tokens SET revoked = true WHERE token = $1 RETURNING worker";
    let workers: Vec<WorkerId> = sqlx::query_scalar(statement).bind(id).fetch_all(&mut *db).await?;
    if !workers.is_empty() {
        for kind in Kind::ALL {
            let leases = leases::held_by(&mut *db, kind, &workers).await?;
            leases::return_leases(&mut *db, kind, None, &leases).await?;
        }
    }
    Ok(true)
}

/// The class of the advisory lock of submissions; the other key is the owner's token.
const SUBMISSION_LOCK: i32 = 0x7375_626d;

/// Locks submissions of this token until the transaction ends. Waits while another transaction
/// holds the lock.
///
/// # Errors
/// If the wait takes longer than a minute.
pub async fn lock_submissions(db: &mut PgConnection, id: TokenId) -> Result<()> {
    sqlx::query("SET LOCAL lock_timeout = '60s'").execute(&mut *db).await?;
    let statement = "SELECT pg_advisory_xact_lock($1, $2)";
    sqlx::query(statement).bind(SUBMISSION_LOCK).bind(id).execute(db).await.map(drop)
}

/// Whether a token is valid now.
pub async fn is_valid(db: impl PgExecutor<'_>, id: TokenId) -> Result<bool> {
    let statement = "
        SELECT EXISTS (
            SELECT FROM tokens WHERE id = $1 AND revoked_at IS NULL
                AND (expires_at IS NULL OR expires_at > database_clock()))";
    sqlx::query_scalar(statement).bind(id).fetch_one(db).await
}

/// The hashes whose secrets are not valid.
pub async fn invalid_hashes(db: impl PgExecutor<'_>, hashes: &[[u8; 32]]) -> Result<Vec<[u8; 32]>> {
    let statement = "
        SELECT secret FROM unnest($1::bytea[]) AS secret
        WHERE find_token(secret, database_clock()) IS NULL";
    let hashes: Vec<_> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
    let invalid: Vec<Vec<u8>> = sqlx::query_scalar(statement).bind(hashes).fetch_all(db).await?;
    Ok(invalid.into_iter().filter_map(|hash| hash.try_into().ok()).collect())
}
