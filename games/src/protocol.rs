//! Protocols of bots.

use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::match_state::TurnPolicy;
use crate::parameter::Text;

/// The protocol of a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// One process for each match, with standard input and output.
    Stdio,
    /// One execution for each decision: arguments in, standard output back.
    Exec,
    /// An HTTP client.
    Http,
}

impl Protocol {
    /// The turn policy of bots with this protocol.
    pub fn turn_policy(self) -> TurnPolicy {
        match self {
            Self::Http => TurnPolicy::AllTables,
            Self::Stdio | Self::Exec => TurnPolicy::AnyTable,
        }
    }
}

/// The end of a reply on standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A reply starts with `=` or `?` and ends with an empty line. Any other reply is illegal and
    /// ends with its first line, so that the bot forfeits at once and not at the deadline.
    Gtp,
    /// A reply is one line.
    Line,
    /// A reply ends with an empty line.
    BlankLine,
    /// A reply ends with the first line that begins with one of these words, as in UCI.
    EndsWith(Arc<[Text]>),
}
