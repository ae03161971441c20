//! The `[schedule]` of a tournament file.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};
use core::str::FromStr;

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{
    Bot, Episodes, Extent, Field, Lineage, Matches, Member, Plan, RoundRobin, ScheduleError,
};

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

/// Who plays whom how often: what `[schedule]` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    /// Matches of two, everybody against everybody.
    RoundRobin(RoundRobin),
    /// Tables of four.
    Foursomes(Extent),
    /// Episodes of rounds that follow from one another.
    Episodes(Episodes),
}

impl Schedule {
    /// The plan for so many bots. The seed is the tournament's; what chance decides here depends
    /// on nothing else.
    ///
    /// # Errors
    /// If there are too few bots, or too many, or if what is asked for is impossible with them.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Plan, ScheduleError> {
        let seed = Self::chance(seed);
        Ok(match self {
            Self::RoundRobin(rules) => {
                Plan::Matches(Matches::Pairings(Box::new(rules.plan(bots, seed)?)))
            }
            Self::Foursomes(extent) => {
                Plan::Matches(Matches::Foursomes(Box::new(extent.plan(bots, seed)?)))
            }
            Self::Episodes(episodes) => Plan::Episodes(episodes.plan(bots)?),
        })
    }

    /// The plan for a field, under the seed that it has grown with.
    ///
    /// # Errors
    /// As for [`Schedule::plan`].
    pub fn plan_for(self, field: &Field, seed: Seed) -> Result<Plan, ScheduleError> {
        match field.tables() {
            Some(tables) => Ok(Plan::Matches(Matches::Grown(Box::new(tables)))),
            None => self.plan(field.bots(), seed),
        }
    }

    /// The field that has come to be like this, with a member for each place. Only foursomes grow:
    /// in other schedules nobody's coming changes the others' matches, and where they stand in the
    /// list is all there is to know.
    ///
    /// # Errors
    /// If there are too few bots, or too many to count their meetings pair by pair, or if what is
    /// asked for is impossible with those who began.
    pub fn grow(
        self,
        lineage: &Lineage,
        members: &[Member],
        seed: Seed,
    ) -> Result<Field, ScheduleError> {
        let numbered = (0..=Bot::MAX).map(Some);
        let begins = lineage.steps.is_empty()
            && members.iter().map(|member| member.bot).eq(numbered.take(members.len()));
        match self {
            Self::Foursomes(extent)
                if !begins || members.iter().any(|member| member.owner.is_some()) =>
            {
                Field::grow(extent, lineage, members, Self::chance(seed))
            }
            _ => Ok(members.iter().filter(|member| member.bot.is_some()).count().into()),
        }
    }

    /// Where the chance of a plan comes from.
    fn chance(seed: Seed) -> Seed {
        seed.derive("schedule")
    }
}

/// The keys of foursomes as they are written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meetings: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    games: Option<i64>,
}

/// Keys that do not say how many foursomes are played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExtentError {
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

impl Extent {
    /// Reads how often each pair is to meet, or how many matches are to be played.
    ///
    /// # Errors
    /// If both are given, or a number is not possible.
    pub fn new(meetings: Option<i64>, games: Option<i64>) -> Result<Self, ExtentError> {
        let out = |key, number| ExtentError::OutOfRange { key, number };
        match (meetings, games) {
            (None, None) => Ok(Self::Least),
            (Some(meetings), Some(games)) => Err(ExtentError::Both { meetings, games }),
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

impl TryFrom<Keys> for Extent {
    type Error = ExtentError;

    fn try_from(keys: Keys) -> Result<Self, ExtentError> {
        Self::new(keys.meetings, keys.games)
    }
}

impl From<Extent> for Keys {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::Least => Self { meetings: None, games: None },
            Extent::Meetings(meetings) => {
                Self { meetings: Some(meetings.get().into()), games: None }
            }
            // Read from one, unless it was made by hand: no tournament is that long.
            Extent::Games(games) => {
                let games = i64::try_from(games.get()).unwrap_or(i64::MAX);
                Self { meetings: None, games: Some(games) }
            }
        }
    }
}
