//! Levels of isolation.

use arbiter_games::string_enum;
use serde::{Deserialize, Serialize};
use thiserror::Error;

string_enum! {
    /// The level of a sandbox, best first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum Level {
        /// Every guarantee, by namespaces and control groups of version 2.
        A = "A",
        /// Every guarantee; memory and processes by groups of version 1, the rest by version 2.
        #[serde(rename = "A'")]
        A1 = "A'",
        /// Every guarantee, by groups of version 1 alone: stopping a bot takes longer.
        #[serde(rename = "A''")]
        A2 = "A''",
        /// Namespaces without control groups: memory, processor time and stopping are best effort.
        B = "B",
        /// Landlock and a filter of system calls: no disk limit, and bots can list file names.
        C = "C",
        /// No isolation: a process group and, if available, a control group for measuring and
        /// killing.
        D = "D",
    }
    FromStr, Err = UnknownLevel
}

impl Level {
    /// Whether official matches may be played: all guarantees hold.
    pub fn is_strict(self) -> bool {
        self <= Self::A2
    }
}

/// A text that is not a level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not a level of the sandbox: the levels are A, A', A'', B, C and D")]
pub struct UnknownLevel(pub String);
