//! Solo matches: every bot plays alone.
//!
//! In each leg every bot plays one match. All matches of a leg can have the same seed, so that all
//! bots solve the same problems.

use serde::{Deserialize, Serialize};

use super::error::check_bots;
use super::{Bot, Claim, Repetitions, ScheduleError};

/// The options of solo matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Solo {
    /// The number of matches of each bot.
    pub legs: Repetitions,
}

impl Default for Solo {
    fn default() -> Self {
        Self { legs: Repetitions::TEN }
    }
}

impl Solo {
    /// The plan for a number of bots.
    ///
    /// # Errors
    /// If there is no bot, or there are too many.
    pub fn plan(self, bots: usize) -> Result<SoloMatches, ScheduleError> {
        check_bots(bots, 1, "solo matches")?;
        Ok(SoloMatches { bots, legs: self.legs.get(), leg: 0, bot: 0 })
    }
}

/// The matches of a plan, one by one: each leg in the order of the bots.
#[derive(Debug)]
pub struct SoloMatches {
    bots: usize,
    legs: u32,
    leg: u32,
    bot: usize,
}

impl SoloMatches {
    /// The total number of matches.
    pub fn matches(&self) -> u64 {
        u64::from(self.legs) * self.bots as u64
    }

    /// The claim of the plan.
    pub fn claim(&self) -> Claim {
        Claim {
            matches: self.matches(),
            opponents: None,
            meetings: 0..=0,
            same_owner_meetings: None,
            match_spread: Some(0),
            seat_spread: Some(0),
            side_spread: None,
        }
    }
}

impl Iterator for SoloMatches {
    /// A leg, from 0, and the bot that plays.
    type Item = (u32, Bot);

    fn next(&mut self) -> Option<(u32, Bot)> {
        if self.bot == self.bots {
            self.bot = 0;
            self.leg += 1;
        }
        if self.leg == self.legs {
            return None;
        }
        self.bot += 1;
        Some((self.leg, Bot::try_from(self.bot - 1).expect("bots are counted")))
    }
}
