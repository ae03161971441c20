//! How bots are spoken to.

use serde::{Deserialize, Serialize};

use crate::match_state::TurnPolicy;

/// How a bot is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One process a match, through its standard input and output.
    Stdio,
    /// One execution a decision: arguments in, standard output back.
    Exec,
    /// A client of a game's HTTP form.
    Http,
}

impl Protocol {
    /// When a bot is asked that speaks it.
    pub fn turn_policy(self) -> TurnPolicy {
        match self {
            Self::Http => TurnPolicy::AllTables,
            Self::Stdio | Self::Exec => TurnPolicy::AnyTable,
        }
    }
}

/// How the answers of a program are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// An answer starts with `=` or `?` and ends with an empty line. One that starts otherwise
    /// ends with its first line, so that it is judged at once and not at the deadline.
    Gtp,
    /// An answer is a line.
    Line,
}
