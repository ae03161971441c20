//! How much is played, as tournament files say it.

use core::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub enum FoursomesConfig {
    /// Every pair meets as often as it must at least, for all to meet equally often.
    #[default]
    Least,
    /// Every pair meets exactly so many times.
    Meetings(NonZeroU32),
    /// So many matches are played, and pairs meet as equally often as can be.
    Games(NonZeroU64),
}

/// The keys of foursomes as they are written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meetings: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    games: Option<i64>,
}

/// Keys that do not say how many foursomes are played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FoursomesConfigError {
    /// Both were given.
    #[error("meetings = {meetings} and games = {games} exclude each other; keep one of them")]
    Both {
        /// How often each pair should meet.
        meetings: i64,
        /// How many matches there should be.
        games: i64,
    },
    /// A number is too small, or too large for any tournament.
    #[error("{key} = {number} is not possible; ask for at least 1, or leave it out")]
    OutOfRange {
        /// Which number.
        key: &'static str,
        /// Its value.
        number: i64,
    },
}

impl FoursomesConfig {
    /// Reads how often each pair is to meet, or how many matches are to be played.
    ///
    /// # Errors
    /// If both are given, or a number is not possible.
    pub fn new(meetings: Option<i64>, games: Option<i64>) -> Result<Self, FoursomesConfigError> {
        let out = |key, number| FoursomesConfigError::OutOfRange { key, number };
        match (meetings, games) {
            (None, None) => Ok(Self::Least),
            (Some(meetings), Some(games)) => Err(FoursomesConfigError::Both { meetings, games }),
            (Some(number), None) => {
                let meetings = u32::try_from(number).ok().and_then(NonZeroU32::new);
                meetings.map(Self::Meetings).ok_or(out("meetings", number))
            }
            (None, Some(number)) => {
                let games = u64::try_from(number).ok().and_then(NonZeroU64::new);
                games.map(Self::Games).ok_or(out("games", number))
            }
        }
    }
}

impl TryFrom<Keys> for FoursomesConfig {
    type Error = FoursomesConfigError;

    fn try_from(keys: Keys) -> Result<Self, FoursomesConfigError> {
        Self::new(keys.meetings, keys.games)
    }
}

impl From<FoursomesConfig> for Keys {
    fn from(extent: FoursomesConfig) -> Self {
        match extent {
            FoursomesConfig::Least => Self { meetings: None, games: None },
            FoursomesConfig::Meetings(meetings) => {
                Self { meetings: Some(meetings.get().into()), games: None }
            }
            // Read from one, unless it was made by hand: no tournament is that long.
            FoursomesConfig::Games(games) => {
                let games = i64::try_from(games.get()).unwrap_or(i64::MAX);
                Self { meetings: None, games: Some(games) }
            }
        }
    }
}
