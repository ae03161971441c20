//! The options of a Swiss tournament of bots.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::Variant;
use crate::error::check_bots;
use crate::seeded_mix::NameKey;
use crate::{Repetitions, ScheduleError, Seeding, SwissTournament};

/// The minimum number of bots.
pub(crate) const MIN_BOTS: usize = 2;

/// The name of this plan in errors.
const PLAN: &str = "a Swiss tournament";

/// The options of a Swiss tournament.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwissRules {
    /// The number of rounds. `None`: ⌈log₂ n⌉ for n bots, so that at most one bot wins all games.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<Repetitions>,
    /// The games of a meeting.
    pub games: Games,
    /// Whether the bots with the better numbers begin with extra points.
    pub accelerated: bool,
    /// The numbers of the bots.
    pub seeding: Seeding,
}

/// The number of games of a meeting, 1 or 2. Two games have both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Games(pub Variant);

/// The error for another number of games.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a meeting of a Swiss tournament cannot have {0} games; choose 1, or 2 for both sides")]
pub struct GamesError(String);

impl Games {
    /// The number.
    pub fn get(self) -> u32 {
        match self.0 {
            Variant::Single => 1,
            Variant::Double => 2,
        }
    }
}

impl TryFrom<i64> for Games {
    type Error = GamesError;

    fn try_from(number: i64) -> Result<Self, GamesError> {
        match number {
            1 => Ok(Self(Variant::Single)),
            2 => Ok(Self(Variant::Double)),
            _ => Err(GamesError(number.to_string())),
        }
    }
}

impl Serialize for Games {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.get())
    }
}

impl<'de> Deserialize<'de> for Games {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        i64::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
    }
}

impl SwissRules {
    /// The plan for bots of these names, in the order of entry.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn among(self, names: &[NameKey]) -> Result<SwissTournament, ScheduleError> {
        check_bots(names.len(), MIN_BOTS, PLAN)?;
        Ok(SwissTournament::new(self, names))
    }

    /// The number of rounds for this many bots.
    pub fn round_count(self, bots: usize) -> usize {
        let least = bots.max(2).next_power_of_two().trailing_zeros();
        self.rounds.map_or(least, Repetitions::get) as usize
    }

    /// The number of matches for this many bots.
    pub(crate) fn matches(self, bots: usize) -> u64 {
        (self.round_count(bots) * (bots / 2)) as u64 * u64::from(self.games.get())
    }
}
