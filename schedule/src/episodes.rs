//! Episodes: in each round every remaining bot plays once, at newly drawn tables.
//!
//! The seats of a round depend on the results of the previous round, so the matches cannot be
//! listed in advance. [`arbiter_games::Episode`] is an episode in progress. The dependencies are
//! known: a round begins after all tables of the previous round. Episodes are independent of each
//! other. The tables of a round are independent too.

use serde::{Deserialize, Serialize};

use super::error::check_bots;
use super::{Repetitions, ScheduleError};

/// Seats at a table of an episode.
const SEATS: usize = 4;

/// The number of episodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Episodes {
    /// The number of episodes (25 in the official tournament).
    pub episodes: Repetitions,
}

impl Default for Episodes {
    fn default() -> Self {
        Self { episodes: Repetitions::TWENTY_FIVE }
    }
}

impl Episodes {
    /// The plan for a number of bots.
    pub fn plan(self, bots: usize) -> Result<EpisodePlan, ScheduleError> {
        check_bots(bots, 1, "episodes")?;
        Ok(EpisodePlan { episodes: self.episodes.get(), bots })
    }
}

/// The plan of episodes: the numbers that are known in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpisodePlan {
    /// The number of episodes.
    pub episodes: u32,
    /// The number of bots that begin each episode.
    pub bots: usize,
}

impl EpisodePlan {
    /// The keys of the episodes, in order. The tournament's seed and the key give an episode's
    /// seed.
    pub fn keys(self) -> impl Iterator<Item = String> {
        (1..=self.episodes).map(|number| format!("episode {number}"))
    }

    /// The number of tables in the first round of an episode. Later rounds have
    /// the same number, or fewer after bots dropped out.
    pub fn tables(self) -> usize {
        self.bots.div_ceil(SEATS)
    }

    /// The maximum number of matches of all episodes with this number of rounds.
    pub fn max_matches(self, rounds: u32) -> u64 {
        u64::from(self.episodes) * u64::from(rounds) * self.tables() as u64
    }
}
