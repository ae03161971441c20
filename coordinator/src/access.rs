//! Access control: tokens and their roles.
//!
//! A token is 256 bits from the system's random number generator. It is shown once; the database
//! stores its hash. A fast hash is safe because a random token cannot be guessed, and a lookup by
//! the hash gives an attacker nothing to time. [`token_throttle`] limits invalid tokens.

use std::fmt;
use std::io;

use arbiter_proto::ids::TokenId;
use arbiter_replay::is_invisible;
use axum::http::HeaderMap;
use rustix::rand::{GetRandomFlags, getrandom};
use sqlx::{Error, PgExecutor, PgPool};
use thiserror::Error as ThisError;
use time::{Duration, OffsetDateTime};

pub mod creation;
pub mod handle;
pub mod name_list;
pub mod stream_revocation;
pub mod token_throttle;

pub use crate::db::tokens::{Role, Token, UnknownRole};

use crate::db::tokens;
use creation::{CreateTokenError, Name, NewToken, Terms};

/// The prefix of every token. It identifies a token that was leaked.
const PREFIX: &str = "arb_";

/// The resolution of a token's last use, so that not every call updates its row.
const LAST_USE_RESOLUTION: Duration = Duration::minutes(5);

/// The secret text of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new random secret.
    pub fn draw() -> io::Result<Self> {
        let bits = blake3::Hash::from_bytes(draw()?);
        Ok(Self(format!("{PREFIX}{}", bits.to_hex())))
    }

    /// The secret in the header `authorization: Bearer SECRET`.
    pub(crate) fn bearer(headers: &HeaderMap) -> Option<Self> {
        let header = headers.get("authorization")?.to_str().ok()?;
        header.strip_prefix("Bearer ").map(|text| Self(text.trim().to_owned()))
    }

    /// The secret in a text that a person typed or pasted. Spaces and line breaks around it are
    /// dropped.
    pub(crate) fn typed(text: &str) -> Result<Self, BadSecret> {
        let text = text.trim();
        if text.contains(char::is_whitespace) {
            Err(BadSecret::Spaces)
        } else if text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            Ok(Self(text.to_owned()))
        } else {
            Err(BadSecret::Characters)
        }
    }

    /// The text that is sent with each call.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The hash that the database stores.
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

/// 256 bits from the system's random number generator.
pub fn draw() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// The secret in a text that may lack the prefix: tricks over HTTP accepts letters and digits only.
pub(crate) fn secret_without_prefix(text: &str) -> Secret {
    let text = text.trim();
    let digits = text.strip_prefix(PREFIX).unwrap_or(text);
    Secret(format!("{PREFIX}{digits}"))
}

/// A text that cannot be the secret of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum BadSecret {
    /// It has a space or a line break in it.
    #[error("the token has a space or a line break in it: copy it again, without them")]
    Spaces,
    /// It has other characters.
    #[error(
        "a token has only letters, digits and `_`: copy it again, from `arb_` to its last character"
    )]
    Characters,
}

/// Maximum length of the name of a token, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// A text that cannot be the name of a new token.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("{} cannot be the name of a token: {fault}", quoted(.name))]
pub struct BadName {
    name: String,
    fault: NameFault,
}

/// What is wrong with the name of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
enum NameFault {
    #[error("use 1 to {max} characters", max = MAX_NAME_LENGTH)]
    Length,
    #[error("remove the spaces at its ends")]
    Spaces,
    #[error(
        "remove U+{code:04X}, its character {position}, which is invisible or changes how the name \
         is shown"
    )]
    Invisible { code: u32, position: usize },
    #[error(
        "commands take a number for the token with that number; add a letter, for example `s7` \
         for `7`"
    )]
    Number,
}

/// The start of a name in quotes, with unprintable characters escaped.
fn quoted(name: &str) -> String {
    let start: String = name.chars().take(MAX_NAME_LENGTH).collect();
    let ellipsis = if start.len() < name.len() { "…" } else { "" };
    format!("{start:?}{ellipsis}")
}

/// Whether a name could be read as the number of a token.
fn is_number(name: &str) -> bool {
    let digits = name.strip_prefix(['+', '-']).unwrap_or(name);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks the name of a new token. Tokens from before a rule keep their names.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let fault = if !(1..=MAX_NAME_LENGTH).contains(&name.chars().count()) {
        NameFault::Length
    } else if name.trim() != name {
        NameFault::Spaces
    } else if let Some((character, position)) =
        name.chars().zip(1..).find(|(character, _)| is_invisible(*character))
    {
        NameFault::Invisible { code: u32::from(character), position }
    } else if is_number(name) {
        NameFault::Number
    } else {
        return Ok(());
    };
    Err(BadName { name: name.to_owned(), fault })
}

impl Role {
    /// Whether this role includes the rights of `required`. An organiser has the rights of players;
    /// an administrator has all rights.
    pub fn covers(self, required: Self) -> bool {
        match required {
            Self::Admin => self == Self::Admin,
            Self::Organiser => matches!(self, Self::Admin | Self::Organiser),
            Self::Player => self != Self::Worker,
            Self::Worker => matches!(self, Self::Admin | Self::Worker),
        }
    }
}

/// Creates a token, whether or not another token has its name: [`creation`] checks that.
pub async fn create(
    db: impl PgExecutor<'_>,
    role: Role,
    name: &str,
    now: OffsetDateTime,
) -> Result<(TokenId, Secret), Error> {
    create_until(db, role, name, None, now).await
}

/// Like [`create`], for a token that expires at `expires_at`, or never.
///
/// # Errors
/// If `expires_at` is in the past, or the random number generator fails.
pub async fn create_until(
    db: impl PgExecutor<'_>,
    role: Role,
    name: &str,
    expires_at: Option<OffsetDateTime>,
    now: OffsetDateTime,
) -> Result<(TokenId, Secret), Error> {
    let secret = Secret::draw().map_err(Error::Io)?;
    let id = tokens::create(db, &secret.hash(), role, name, expires_at, now).await?;
    Ok((id, secret))
}

/// Creates a token for an operator with access to the database, and adds it to the audit log.
pub async fn create_audited(
    pool: &PgPool,
    name: Name<'_>,
    terms: Terms,
    now: OffsetDateTime,
) -> Result<NewToken, CreateTokenError> {
    let mut transaction = pool.begin().await?;
    let created = creation::create_one(&mut transaction, name, terms, now).await?;
    transaction.commit().await?;
    Ok(created)
}

/// Gives a token a new secret. The old one stays valid until `until`. `None` if the token was
/// revoked.
pub async fn rotate(
    db: impl PgExecutor<'_>,
    id: TokenId,
    until: Option<OffsetDateTime>,
) -> Result<Option<Secret>, Error> {
    let secret = Secret::draw().map_err(Error::Io)?;
    let was_rotated = tokens::rotate(db, id, &secret.hash(), until).await?;
    Ok(was_rotated.then_some(secret))
}

/// The token of a secret, if it is valid at this time. Records when the token was used.
pub async fn find(
    pool: &PgPool,
    secret: &Secret,
    now: OffsetDateTime,
) -> Result<Option<Token>, Error> {
    let token = tokens::find(pool, &secret.hash(), now).await?;
    if let Some(token) = &token
        && token.used_at.is_none_or(|used| used <= now - LAST_USE_RESOLUTION)
        && let Err(error) = tokens::record_use(pool, token.id, now - LAST_USE_RESOLUTION, now).await
    {
        // The token is still valid.
        tracing::warn!(%error, token = %token.id, "cannot record the use of a token");
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_cover_the_right_roles() {
        let covered = |role: Role| Role::ALL.map(|required| role.covers(required));
        assert_eq!(covered(Role::Admin), [true, true, true, true]);
        assert_eq!(covered(Role::Organiser), [false, true, true, false]);
        assert_eq!(covered(Role::Player), [false, false, true, false]);
        assert_eq!(covered(Role::Worker), [false, false, false, true]);
    }

    #[test]
    fn names_are_printable() {
        for good in ["x", "Ada Lovelace", &"ż".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "ada ", "a\nb", "\u{1b}[31m", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_have_no_characters_that_hide() {
        for (bad, character) in [
            ("zero\u{200b}width", "U+200B, its character 5,"),
            ("evil\u{202e}gnp", "U+202E, its character 5,"),
            ("Jan\u{a0}Kowalski", "U+00A0, its character 4,"),
            ("a\nb", "U+000A, its character 2,"),
        ] {
            let error = check_name(bad).unwrap_err().to_string();
            assert!(error.contains(character), "{error}");
            assert!(!error.contains(is_invisible), "{error:?}");
        }
    }

    #[test]
    fn names_are_no_numbers() {
        for good in ["s7", "7b", "7 8", "-", "+", "7.0"] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["7", "007", "+7", "-7", "99999999999999999999"] {
            let error = check_name(bad).unwrap_err().to_string();
            assert!(error.contains("add a letter"), "{bad}: {error}");
        }
    }

    #[test]
    fn typed_secrets_may_have_spaces_around_them_but_not_in_them() {
        assert_eq!(Secret::typed(" arb_1f\r\n"), Ok(Secret("arb_1f".to_owned())));
        assert_eq!(Secret::typed("arb_1f 2e"), Err(BadSecret::Spaces));
        assert_eq!(Secret::typed("arb_1f\n2e"), Err(BadSecret::Spaces));
        assert_eq!(Secret::typed("arb_…"), Err(BadSecret::Characters));
    }

    #[test]
    fn secrets_differ_and_are_not_shown() {
        let one = Secret::draw().unwrap();
        let two = Secret::draw().unwrap();
        assert_ne!(one, two);
        assert!(one.text().starts_with(PREFIX) && one.text().len() == PREFIX.len() + 64);
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
