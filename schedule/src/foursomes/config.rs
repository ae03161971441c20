//! The options of foursomes in a tournament file.

use core::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::MAX_MEETINGS;

/// The number of foursomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub enum FoursomesConfig {
    /// Every pair meets λ times: the smallest possible number.
    #[default]
    Least,
    /// The number of meetings of every pair. If it is not possible with some number of bots, all
    /// pairs meet more often, equally often: the smallest possible number.
    Meetings(NonZeroU32),
    /// The number of matches. The numbers of meetings of pairs differ as little as possible.
    Games(NonZeroU64),
}

/// The keys of a tournament file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meetings: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    games: Option<i64>,
}

/// Why the keys are not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FoursomesConfigError {
    /// Both keys are present.
    #[error("meetings = {meetings} and games = {games} exclude each other; keep one of them")]
    Both {
        /// The requested meetings of each pair.
        meetings: i64,
        /// The requested number of matches.
        games: i64,
    },
    /// There are too many meetings.
    #[error("meetings = {0} is not possible; write at most {MAX_MEETINGS}")]
    TooManyMeetings(i64),
    /// A number is out of range.
    #[error("{key} = {number} is not possible; write 1 or more, or leave it out")]
    OutOfRange {
        /// The key of the number.
        key: &'static str,
        /// Its value.
        number: i64,
    },
}

impl FoursomesConfig {
    /// The number of meetings of each pair, or the number of matches, of a new tournament.
    ///
    /// # Errors
    /// If both are present, or a number is out of range.
    pub fn new(meetings: Option<i64>, games: Option<i64>) -> Result<Self, FoursomesConfigError> {
        Self::stored(meetings, games)?.check_new()
    }

    /// This number, if a new tournament can have it. Those of former releases may have others.
    ///
    /// # Errors
    /// If there are too many meetings.
    pub fn check_new(self) -> Result<Self, FoursomesConfigError> {
        match self {
            Self::Meetings(number) if number.get() > MAX_MEETINGS => {
                Err(FoursomesConfigError::TooManyMeetings(number.get().into()))
            }
            _ => Ok(self),
        }
    }

    fn stored(meetings: Option<i64>, games: Option<i64>) -> Result<Self, FoursomesConfigError> {
        let error = |key, number| FoursomesConfigError::OutOfRange { key, number };
        match (meetings, games) {
            (None, None) => Ok(Self::Least),
            (Some(meetings), Some(games)) => Err(FoursomesConfigError::Both { meetings, games }),
            (Some(number), None) => {
                let meetings = u32::try_from(number).ok().and_then(NonZeroU32::new);
                meetings.map(Self::Meetings).ok_or(error("meetings", number))
            }
            (None, Some(number)) => {
                let games = u64::try_from(number).ok().and_then(NonZeroU64::new);
                games.map(Self::Games).ok_or(error("games", number))
            }
        }
    }
}

impl TryFrom<Keys> for FoursomesConfig {
    type Error = FoursomesConfigError;

    fn try_from(keys: Keys) -> Result<Self, FoursomesConfigError> {
        Self::stored(keys.meetings, keys.games)
    }
}

impl From<FoursomesConfig> for Keys {
    fn from(config: FoursomesConfig) -> Self {
        match config {
            FoursomesConfig::Least => Self { meetings: None, games: None },
            FoursomesConfig::Meetings(meetings) => {
                Self { meetings: Some(meetings.get().into()), games: None }
            }
            // `new` accepts only numbers that fit into an i64.
            FoursomesConfig::Games(games) => {
                let games = i64::try_from(games.get()).unwrap_or(i64::MAX);
                Self { meetings: None, games: Some(games) }
            }
        }
    }
}
