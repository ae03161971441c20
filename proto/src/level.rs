//! How much a machine can isolate and measure, in one letter.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What holds a bot, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Every guarantee, by namespaces and control groups of version 2.
    A,
    /// Every guarantee; memory and processes by groups of version 1, the rest by version 2.
    #[serde(rename = "A'")]
    A1,
    /// Every guarantee, by groups of version 1 alone: stopping a bot takes longer.
    #[serde(rename = "A''")]
    A2,
    /// Namespaces without control groups: memory, processor time and stopping are best effort.
    B,
    /// Landlock and a filter of system calls: no disk limit, and names of files can be seen.
    C,
    /// Nothing but a process group and, where there is one, a control group to measure and kill.
    D,
}

impl Level {
    /// All of them, best first.
    pub const ALL: [Self; 6] = [Self::A, Self::A1, Self::A2, Self::B, Self::C, Self::D];

    /// Its name, as `arbiter doctor` says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::A1 => "A'",
            Self::A2 => "A''",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
        }
    }

    /// Whether official matches may be played: everything is guaranteed.
    pub fn is_strict(self) -> bool {
        self <= Self::A2
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that names no level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no level of the sandbox: they are A, A', A'', B, C and D")]
pub struct UnknownLevel(pub String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(word: &str) -> Result<Self, UnknownLevel> {
        let named = Self::ALL.into_iter().find(|level| level.word() == word);
        named.ok_or_else(|| UnknownLevel(word.to_owned()))
    }
}
