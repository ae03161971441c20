//! Names of bots: as protocols and records use them, and as tournaments list them.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// A bot's name: `[A-Za-z0-9._-]+`, at most 64 characters. `.` and `..` are excluded because they
/// are names of directories, and `TIE` because gomoku sends it instead of a winner's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BotName(String);

impl BotName {
    /// The maximum length of a name, in bytes.
    pub const MAX_LENGTH: usize = 64;

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<BotName> for String {
    fn from(name: BotName) -> Self {
        name.0
    }
}

impl fmt::Display for BotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A text that cannot be a bot's name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` cannot be a bot's name: use 1 to {max} of A-Z a-z 0-9 . _ - but not `TIE`, `.` or `..`",
    max = BotName::MAX_LENGTH
)]
pub struct BotNameError(pub String);

impl FromStr for BotName {
    type Err = BotNameError;

    fn from_str(text: &str) -> Result<Self, BotNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=Self::MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed);
        if fits && ![".", "..", "TIE"].contains(&text) {
            Ok(Self(text.to_string()))
        } else {
            Err(BotNameError(text.to_string()))
        }
    }
}

/// The name of a bot in a tournament: a bot's name, and for the bot of a player the player's handle
/// and a slash before it, as in `ada/mybot`. At most 64 characters together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntrantName {
    text: String,
    /// The name as a protocol allows it.
    in_matches: BotName,
}

impl EntrantName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name in matches and their records, with a dot for the slash: the games' protocols allow
    /// no slash.
    pub fn in_matches(&self) -> &BotName {
        &self.in_matches
    }
}

/// The handle of the owner in the name of a bot, if it has one, and the rest of the name.
pub fn split_owner(name: &str) -> (Option<&str>, &str) {
    name.split_once('/').map_or((None, name), |(owner, short)| (Some(owner), short))
}

impl From<BotName> for EntrantName {
    fn from(name: BotName) -> Self {
        Self { text: name.0.clone(), in_matches: name }
    }
}

impl fmt::Display for EntrantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for EntrantName {
    type Err = BotNameError;

    fn from_str(text: &str) -> Result<Self, BotNameError> {
        let invalid = |_| BotNameError(text.to_string());
        let (owner, short) = split_owner(text);
        short.parse::<BotName>().map_err(invalid)?;
        let in_matches = match owner {
            None => short.to_string(),
            Some(owner) => {
                owner.parse::<BotName>().map_err(invalid)?;
                text.replacen('/', ".", 1)
            }
        };
        Ok(Self { text: text.to_string(), in_matches: in_matches.parse().map_err(invalid)? })
    }
}

impl<'de> Deserialize<'de> for BotName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::clock::text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_entrant_has_at_most_one_owner_and_fits_in_a_protocol() {
        let name: EntrantName = "ada/my.bot".parse().unwrap();
        assert_eq!((name.as_str(), name.in_matches().as_str()), ("ada/my.bot", "ada.my.bot"));
        let plain: EntrantName = "my.bot".parse().unwrap();
        assert_eq!((plain.as_str(), plain.in_matches().as_str()), ("my.bot", "my.bot"));
        assert_eq!(EntrantName::from(plain.in_matches().clone()), plain);
        let long = "y".repeat(63);
        for text in [
            "",
            "/",
            "ada/",
            "/mybot",
            "a/b/c",
            "ada/..",
            "ada/TIE",
            "a b/c",
            &["x/", &long].concat(),
        ] {
            assert!(text.parse::<EntrantName>().is_err(), "{text}");
        }
    }
}
