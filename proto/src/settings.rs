//! What a tournament file says about playing, as it travels with each lot.

use arbiter_games::ClockRules;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::{Limits, Ponder};

/// What happens to the files that a bot leaves: `state` of a tournament file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StateScope {
    /// They are gone after the match.
    #[default]
    None,
    /// They are there again in the next match against the same opponents.
    Pairing,
    /// They are there again in the next match of the edition.
    Tournament,
}

impl StateScope {
    /// Whether files pass from match to match.
    pub fn keeps(self) -> bool {
        self != Self::None
    }
}

/// Everything that all matches of a tournament have in common, as JSON in `Lot.settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The game's parameters, those left out at their defaults. A match may replace some.
    pub params: Map<String, Value>,
    /// How time is charged.
    pub clock: ClockRules,
    /// What a bot may use.
    pub limits: Limits,
    /// What it may do while it owes nothing.
    pub ponder: Ponder,
    /// What happens to its files.
    pub state: StateScope,
}
