//! The settings of a tournament file that concern play. Each lot carries them.

use std::fmt;

use arbiter_games::ClockRules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::convert::InvalidField;
use crate::limits::{Limits, Ponder};

/// Whether a bot keeps its files between matches: `state` of a tournament file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateScope {
    /// Files are deleted after the match.
    #[default]
    None,
    /// The next match against the same opponents gets the files.
    Pairing,
    /// The next match of the edition gets the files.
    Tournament,
}

impl StateScope {
    /// Whether files pass from match to match.
    pub fn keeps_files(self) -> bool {
        self != Self::None
    }
}

/// The common settings of all matches of a tournament, as JSON in `Lot.settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The game's parameters; missing ones have their defaults. A match may replace some.
    pub params: Map<String, Value>,
    /// How time is charged.
    pub clock: ClockRules,
    /// The resource limits of a bot.
    pub limits: Limits,
    /// What a bot may do between its turns.
    pub ponder: Ponder,
    /// Whether a bot keeps its files.
    pub state: StateScope,
    /// The game, if it is a package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<GamePackage>,
}

/// A game package in a tournament file. Workers fetch its files; the coordinator only stores them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GamePackage {
    /// BLAKE3 of the packed package.
    pub bundle: HexDigest,
    /// The digest of the files that decide a match, which records name.
    pub digest: HexDigest,
    /// The text of its descriptor, `game.toml`.
    pub descriptor: String,
}

/// A BLAKE3 digest, written in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HexDigest(pub blake3::Hash);

impl TryFrom<String> for HexDigest {
    type Error = InvalidField;

    fn try_from(value: String) -> Result<Self, InvalidField> {
        let hash = blake3::Hash::from_hex(&value);
        hash.map(Self).map_err(|_| InvalidField::Text { field: "digest", value })
    }
}

impl fmt::Display for HexDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<HexDigest> for String {
    fn from(HexDigest(hash): HexDigest) -> Self {
        hash.to_hex().to_string()
    }
}
