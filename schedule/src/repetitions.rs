//! Numbers of repetitions.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of repetitions, from 1 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct Repetitions(u32);

impl Repetitions {
    /// Once.
    pub const ONCE: Self = Self(1);
    /// Twice.
    pub const TWICE: Self = Self(2);
    /// The default number of legs at tables and of solo matches.
    pub const TEN: Self = Self(10);
    /// The official number of episodes.
    pub const TWENTY_FIVE: Self = Self(25);
    /// The maximum.
    const MAX: u32 = 1000;

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Repetitions {
    fn default() -> Self {
        Self::ONCE
    }
}

impl fmt::Display for Repetitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The error for a number outside 1 to 1000.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is not possible here; choose a number from 1 to 1000")]
pub struct RepetitionsError(String);

impl TryFrom<i64> for Repetitions {
    type Error = RepetitionsError;

    fn try_from(number: i64) -> Result<Self, RepetitionsError> {
        let repetitions =
            u32::try_from(number).ok().filter(|times| (1..=Self::MAX).contains(times));
        repetitions.map(Self).ok_or_else(|| RepetitionsError(number.to_string()))
    }
}

impl From<Repetitions> for u32 {
    fn from(times: Repetitions) -> Self {
        times.0
    }
}

impl FromStr for Repetitions {
    type Err = RepetitionsError;

    fn from_str(text: &str) -> Result<Self, RepetitionsError> {
        let number: i64 = text.parse().map_err(|_| RepetitionsError(text.to_owned()))?;
        number.try_into()
    }
}
