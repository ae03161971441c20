//! Episodes: rounds in which everybody left plays once, seated anew after each.
//!
//! Who sits where in a round follows from the results of the one before, so there are no matches to
//! list in advance: an episode in progress is [`arbiter_games::Episode`]. What can be
//! said beforehand is what depends on what: episodes are independent of one another; the tables of
//! a round are too; and a round waits for all tables of the one before.

use serde::{Deserialize, Serialize};

use super::error::check_bots;
use super::{ScheduleError, Times};

/// Seats at a table of an episode.
const SEATS: usize = 4;

/// How many episodes are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Episodes {
    /// So many ("Tournament": 25).
    pub episodes: Times,
}

impl Default for Episodes {
    fn default() -> Self {
        Self { episodes: Times::TWENTY_FIVE }
    }
}

impl Episodes {
    /// The plan for so many bots.
    pub fn plan(self, bots: usize) -> Result<EpisodePlan, ScheduleError> {
        check_bots(bots, 1, "episodes")?;
        Ok(EpisodePlan { episodes: self.episodes.get(), bots })
    }
}

/// What is known of episodes before they are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodePlan {
    /// How many there are.
    pub episodes: u32,
    /// How many bots begin each.
    pub bots: usize,
}

impl EpisodePlan {
    /// The keys of the episodes, in order. An episode's seed is derived with its key from the
    /// tournament's.
    pub fn keys(self) -> impl Iterator<Item = String> {
        (1..=self.episodes).map(|number| format!("episode {number}"))
    }

    /// How many tables the first round of an episode has. Later ones have as many, or fewer once
    /// bots are broke.
    pub fn tables(self) -> usize {
        self.bots.div_ceil(SEATS)
    }

    /// How many matches there are at most, if episodes have so many rounds.
    pub fn most_matches(self, rounds: u32) -> u64 {
        u64::from(self.episodes) * u64::from(rounds) * self.tables() as u64
    }
}
