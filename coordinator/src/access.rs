//! Who may do what: tokens, and the roles they stand for.
//!
//! A token is 256 bits from the system's randomness, shown once; the database keeps its hash. Since
//! it has no pattern to guess at, a fast hash gives nothing away, and looking it up by that hash
//! compares nothing that an attacker could time. How many wrong ones somebody may try is for
//! [`token_throttle`] to say.

use std::fmt;
use std::io;

use arbiter_proto::ids::TokenId;
use axum::http::HeaderMap;
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::{Value, json};
use sqlx::{Error, PgConnection, PgExecutor, PgPool};
use thiserror::Error as ThisError;
use time::{Duration, OffsetDateTime};

pub mod open_tokens;
pub mod token_throttle;

pub use crate::db::tokens::{Role, Token, UnknownRole};

use crate::db::{audit_log, tokens};

/// What every token begins with, so that one that was left about is known for what it is.
const PREFIX: &str = "arb_";

/// How exactly it is noted when a token was last used: not each call is to change its row.
const USED: Duration = Duration::minutes(5);

/// What lets somebody in.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one.
    pub fn draw() -> io::Result<Self> {
        let bits = blake3::Hash::from_bytes(draw()?);
        Ok(Self(format!("{PREFIX}{}", bits.to_hex())))
    }

    /// The secret in the head of a request, as `authorization: Bearer SECRET`.
    pub(crate) fn bearer(headers: &HeaderMap) -> Option<Self> {
        let header = headers.get("authorization")?.to_str().ok()?;
        header.strip_prefix("Bearer ").map(|text| Self(text.to_owned()))
    }

    /// The text that is sent with each call.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub(crate) fn hash(&self) -> [u8; 32] {
        blake3::hash(self.0.as_bytes()).into()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// 256 bits from the system's randomness: for tokens, and for seeds that nobody chose.
pub fn draw() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut drawn = 0;
    while drawn < bytes.len() {
        drawn += getrandom(&mut bytes[drawn..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// The secret that somebody typed where only letters and digits are taken: the beginning that all
/// have may be left out.
pub(crate) fn typed(text: &str) -> Secret {
    let bare = text.strip_prefix(PREFIX).unwrap_or(text);
    Secret(format!("{PREFIX}{bare}"))
}

/// A name that no token may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("a token's name has 1 to 64 characters, none of them a control")]
pub struct BadName;

/// Whether a token may be called so.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let fits = (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(BadName) }
}

impl Role {
    /// Whether this role may do what `asked` is needed for. An organiser may do what players may;
    /// an administrator may do everything.
    pub fn covers(self, asked: Self) -> bool {
        match asked {
            Self::Admin => self == Self::Admin,
            Self::Organiser => matches!(self, Self::Admin | Self::Organiser),
            Self::Player => self != Self::Worker,
            Self::Worker => matches!(self, Self::Admin | Self::Worker),
        }
    }
}

/// Makes a token.
pub async fn create(
    db: impl PgExecutor<'_>,
    role: Role,
    name: &str,
    now: OffsetDateTime,
) -> Result<(TokenId, Secret), Error> {
    let secret = Secret::draw().map_err(Error::Io)?;
    let id = tokens::create(db, &secret.hash(), role, name, now).await?;
    Ok((id, secret))
}

/// Makes a token that ends by itself, if `expires_at` says when.
///
/// # Errors
/// If that is in the past, or the system gives no randomness.
pub async fn create_until(
    db: &mut PgConnection,
    role: Role,
    name: &str,
    expires_at: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<(TokenId, Secret), Error> {
    let made = create(&mut *db, role, name, now).await?;
    if let Some(expires_at) = expires_at {
        tokens::expire(&mut *db, made.0, expires_at).await?;
    }
    Ok(made)
}

/// Makes a token for somebody who has the database itself, and notes that.
pub async fn create_noted(
    pool: &PgPool,
    role: Role,
    name: &str,
    expires_at: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<(TokenId, Secret), Error> {
    let mut transaction = pool.begin().await?;
    let (id, secret) = create_until(&mut transaction, role, name, expires_at, now).await?;
    let (subject, detail) = (format!("{id} {role} {name}"), made(role, name, expires_at));
    audit_log::write(&mut *transaction, None, "token create", &subject, Some(&detail), now).await?;
    transaction.commit().await?;
    Ok((id, secret))
}

/// A new token, as the audit log tells of it.
pub(crate) fn made(role: Role, name: &str, expires_at: Option<OffsetDateTime>) -> Value {
    let expires = expires_at.map(OffsetDateTime::unix_timestamp);
    json!({"before": null, "after": {"role": role.as_str(), "name": name, "expires": expires}})
}

/// Gives a token another secret; the present one lets in until `until` as well. Nothing if it was
/// revoked.
pub async fn rotate(
    db: impl PgExecutor<'_>,
    id: TokenId,
    until: Option<OffsetDateTime>,
) -> Result<Option<Secret>, Error> {
    let secret = Secret::draw().map_err(Error::Io)?;
    let rotated = tokens::rotate(db, id, &secret.hash(), until).await?;
    Ok(rotated.then_some(secret))
}

/// The token that a text stands for, if it lets anybody in at this time, which is noted.
pub async fn find(
    pool: &PgPool,
    secret: &Secret,
    now: OffsetDateTime,
) -> Result<Option<Token>, Error> {
    let found = tokens::find(pool, &secret.hash(), now).await?;
    if let Some(token) = &found
        && token.used_at.is_none_or(|used| used <= now - USED)
        && let Err(error) = tokens::used(pool, token.id, now - USED, now).await
    {
        // Nobody is kept out because of that.
        tracing::warn!(%error, token = %token.id, "cannot note that a token was used");
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_cover_what_they_should() {
        let covered = |role: Role| Role::ALL.map(|asked| role.covers(asked));
        assert_eq!(covered(Role::Admin), [true, true, true, true]);
        assert_eq!(covered(Role::Organiser), [false, true, true, false]);
        assert_eq!(covered(Role::Player), [false, false, true, false]);
        assert_eq!(covered(Role::Worker), [false, false, false, true]);
    }

    #[test]
    fn names_can_be_shown() {
        for good in ["x", "Ada Lovelace", &"ż".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a\nb", "\u{1b}[31m", &"x".repeat(65)] {
            assert_eq!(check_name(bad), Err(BadName), "{bad}");
        }
    }

    #[test]
    fn secrets_differ_and_are_not_shown() {
        let (one, two) = (Secret::draw().unwrap(), Secret::draw().unwrap());
        assert_ne!(one, two);
        assert!(one.text().starts_with(PREFIX) && one.text().len() == PREFIX.len() + 64);
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
