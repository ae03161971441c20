//! The settings of a tournament file that concern play. Each lot carries them.

use arbiter_games::ClockRules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
}
