//! Names of bots as protocols and records use them.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

/// The maximum length of a name, in bytes.
const MAX_LENGTH: usize = 64;

/// A bot's name: `[A-Za-z0-9._-]+`, at most 64 characters. `.` and `..` are excluded because they
/// are names of directories, and `TIE` because gomoku sends it instead of a winner's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BotName(String);

impl BotName {
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
    "`{0}` cannot be a bot's name: use 1 to {MAX_LENGTH} of A-Z a-z 0-9 . _ - but not TIE, . or .."
)]
pub struct BotNameError(pub String);

impl FromStr for BotName {
    type Err = BotNameError;

    fn from_str(text: &str) -> Result<Self, BotNameError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let fits = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed);
        if fits && ![".", "..", "TIE"].contains(&text) {
            Ok(Self(text.to_string()))
        } else {
            Err(BotNameError(text.to_string()))
        }
    }
}

impl<'de> Deserialize<'de> for BotName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::clock::text(deserializer)
    }
}
