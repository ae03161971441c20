//! How often something is played.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How often something is played: 1 to 1000 times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct Times(u32);

impl Times {
    /// Once.
    pub const ONCE: Self = Self(1);
    /// The official number of episodes.
    pub const TWENTY_FIVE: Self = Self(25);
    /// The largest number.
    const MOST: u32 = 1000;

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::ONCE
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of times that nothing can be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is not possible here; choose a number from 1 to 1000")]
pub struct TimesError(String);

impl TryFrom<i64> for Times {
    type Error = TimesError;

    fn try_from(number: i64) -> Result<Self, TimesError> {
        let times = u32::try_from(number).ok().filter(|times| (1..=Self::MOST).contains(times));
        times.map(Self).ok_or_else(|| TimesError(number.to_string()))
    }
}

impl From<Times> for u32 {
    fn from(times: Times) -> Self {
        times.0
    }
}

impl FromStr for Times {
    type Err = TimesError;

    fn from_str(text: &str) -> Result<Self, TimesError> {
        let number: i64 = text.parse().map_err(|_| TimesError(text.to_owned()))?;
        number.try_into()
    }
}
