//! Who may do what: tokens, and the roles they stand for.
//!
//! A token is 256 bits from the system's randomness, shown once; the database keeps its hash. Since
//! it has no pattern to guess at, a fast hash gives nothing away, and looking it up by that hash
//! compares nothing that an attacker could time.

use std::fmt;
use std::io;
use std::str::FromStr;

use arbiter_proto::ids::TokenId;
use rustix::rand::{GetRandomFlags, getrandom};
use sqlx::{Error, PgExecutor, PgPool};
use thiserror::Error as ThisError;
use time::OffsetDateTime;

pub use crate::db::tokens::{Role, Token};

use crate::db::tokens;

/// What every token begins with, so that one that was left about is known for what it is.
const PREFIX: &str = "arb_";

/// What lets somebody in.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn draw() -> io::Result<Self> {
        let bits = blake3::Hash::from_bytes(draw()?);
        Ok(Self(format!("{PREFIX}{}", bits.to_hex())))
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
///
/// # Errors
/// If the system gives none.
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

/// A word that is no role.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("`{0}` is no role: they are admin, organiser, player and worker")]
pub struct UnknownRole(pub String);

/// A name that no token may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
#[error("a token's name has 1 to 64 characters, none of them a control")]
pub struct BadName;

/// Whether a token may be called so.
///
/// # Errors
/// If it may not.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let fits = (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(BadName) }
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Admin, Self::Organiser, Self::Player, Self::Worker];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Organiser => "organiser",
            Self::Player => "player",
            Self::Worker => "worker",
        }
    }

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

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let named = Self::ALL.into_iter().find(|role| role.word() == word);
        named.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

/// Makes a token.
///
/// # Errors
/// If the system gives no randomness, or the database fails.
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

/// The token that a text stands for, unless it was revoked.
///
/// # Errors
/// If the database fails.
pub async fn find(pool: &PgPool, secret: &Secret) -> Result<Option<Token>, Error> {
    tokens::find(pool, &secret.hash()).await
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
