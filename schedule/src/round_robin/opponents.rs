//! The number of others that each bot meets, if not all pairs meet.

use core::fmt;
use core::num::NonZeroU16;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of opponents, from 1 to 65 535.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u16")]
pub struct Opponents(NonZeroU16);

/// The error for a number that no bot can have as opponents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is not possible here; choose a number from 1 to 65535, or leave it out for all pairs")]
pub struct OpponentsError(String);

impl Opponents {
    /// The requested number.
    pub fn get(self) -> u32 {
        self.0.get().into()
    }

    /// The number of others that each of `bots` bots meets: at most all of them. If both the number
    /// and `bots` are odd, the bots' opponents do not add up to whole pairs. Then it is one more.
    pub fn among(self, bots: usize) -> usize {
        let others = bots.saturating_sub(1);
        let requested = usize::from(self.0.get());
        let is_odd = bots % 2 == 1 && requested % 2 == 1;
        (requested + usize::from(is_odd)).min(others)
    }
}

impl fmt::Display for Opponents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<i64> for Opponents {
    type Error = OpponentsError;

    fn try_from(number: i64) -> Result<Self, OpponentsError> {
        let opponents = u16::try_from(number).ok().and_then(NonZeroU16::new);
        opponents.map(Self).ok_or_else(|| OpponentsError(number.to_string()))
    }
}

impl From<Opponents> for u16 {
    fn from(opponents: Opponents) -> Self {
        opponents.0.get()
    }
}

impl FromStr for Opponents {
    type Err = OpponentsError;

    fn from_str(text: &str) -> Result<Self, OpponentsError> {
        let number: i64 = text.parse().map_err(|_| OpponentsError(text.to_owned()))?;
        number.try_into()
    }
}
