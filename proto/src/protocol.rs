//! How bots are spoken to.

use arbiter_games::{GameName, TurnPolicy};
use serde::{Deserialize, Serialize};

/// How a bot is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One process a match, through its standard input and output.
    Stdio,
    /// One execution a decision: arguments in, standard output back.
    Exec,
    /// A client of the HTTP form of tricks, the only game that has one.
    Http,
}

impl Protocol {
    /// The protocol of a bot whose manifest names none.
    pub fn default_of(game: GameName) -> Self {
        match game {
            GameName::Blackjack => Self::Exec,
            GameName::Wojna | GameName::Bitwa | GameName::Tricks | GameName::Gomoku => Self::Stdio,
        }
    }

    /// When a bot is asked that speaks it.
    pub fn turn_policy(self) -> TurnPolicy {
        match self {
            Self::Http => TurnPolicy::AllTables,
            Self::Stdio | Self::Exec => TurnPolicy::AnyTable,
        }
    }

    /// Whether a game can be played by it.
    pub fn is_spoken_at(self, game: GameName) -> bool {
        self != Self::Http || game == GameName::Tricks
    }
}
