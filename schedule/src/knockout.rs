//! Knockout: two bots meet, the loser is out, and the winners meet in the next round.
//!
//! # The bracket
//!
//! Every bot has a number in the bracket, the best one first. The first round has a place for each
//! number up to the next power of two, 2ᵏ. Without surprises the sum of the numbers of each meeting
//! is the same in a round: 2ᵏ + 1 in the first one, 2ᵏ⁻¹ + 1 in the second one, and so on. So
//! numbers 1 and 2 can meet only in the final. Numbers without a bot give their opponents, which
//! are the best numbers, a bye.
//!
//! # Meetings
//!
//! A meeting is `best_of` games with sides swapped from game to game. All of them are played, and
//! the sums of the scores decide, compared from the left as in the game's ranking. After a tie a
//! pair of games with sides swapped is added, at most `extra_pairs` times. If the sums are still
//! equal, the better number in the bracket advances.
//!
//! A round is over when all its meetings are decided. The extra games of all tied meetings of a
//! round are planned together, so the order of matches does not depend on the speed of a meeting.
//!
//! Numbers and sides depend only on the bots' names ([`NameKey`]), and the number of a game only on
//! its meeting. So two bots that meet in another round, or in a later edition, play the same games.

mod bracket;
mod certificate;

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::error::check_bots;
use super::seeded_mix::NameKey;
use super::{MatchBounds, Repetitions, ScheduleError, Seeding};
pub use bracket::{Bracket, DecidedBy, Decision, Fixture, Meeting};
pub use certificate::{BracketCertificate, BracketError};

/// The minimum number of bots.
const MIN_BOTS: usize = 2;

/// The fewest bots with two losers of semi-finals, who can play for the third place.
const MIN_BOTS_FOR_THIRD_PLACE: usize = 4;

/// The name of this plan in errors.
const PLAN: &str = "a knockout";

/// A key of [`mix`](crate::mix), so that sides are independent of other random choices.
const SIDES: u64 = 5;

/// The options of a knockout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Knockout {
    /// The number of games of each meeting.
    pub best_of: Repetitions,
    /// The maximum number of pairs of games after a tie.
    pub extra_pairs: ExtraPairs,
    /// Whether the losers of the semi-finals play for the third place.
    pub third_place: bool,
    /// The numbers of the bots in the bracket.
    pub seeding: Seeding,
}

impl Default for Knockout {
    fn default() -> Self {
        Self {
            best_of: Repetitions::TWICE,
            extra_pairs: ExtraPairs::default(),
            third_place: false,
            seeding: Seeding::default(),
        }
    }
}

/// A number of pairs of games, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "u32")]
pub struct ExtraPairs(u32);

impl ExtraPairs {
    /// The maximum.
    const MAX: u32 = 100;

    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Default for ExtraPairs {
    fn default() -> Self {
        Self(1)
    }
}

/// The error for a number outside 0 to 100.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} pairs of extra games are not possible; choose a number from 0 to 100")]
pub struct ExtraPairsError(String);

impl TryFrom<i64> for ExtraPairs {
    type Error = ExtraPairsError;

    fn try_from(number: i64) -> Result<Self, ExtraPairsError> {
        let pairs = u32::try_from(number).ok().filter(|pairs| *pairs <= Self::MAX);
        pairs.map(Self).ok_or_else(|| ExtraPairsError(number.to_string()))
    }
}

impl From<ExtraPairs> for u32 {
    fn from(pairs: ExtraPairs) -> Self {
        pairs.0
    }
}

impl core::str::FromStr for ExtraPairs {
    type Err = ExtraPairsError;

    fn from_str(text: &str) -> Result<Self, ExtraPairsError> {
        let number: i64 = text.parse().map_err(|_| ExtraPairsError(text.to_owned()))?;
        number.try_into()
    }
}

impl Knockout {
    /// The plan for a number of bots. `seed` determines all random choices.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Bracket, ScheduleError> {
        check_bots(bots, MIN_BOTS, PLAN)?;
        self.among(&NameKey::of_numbers(seed, bots))
    }

    /// The plan for bots of these names, in the order of entry.
    ///
    /// # Errors
    /// If there are fewer than 2 bots, or too many.
    pub fn among(self, names: &[NameKey]) -> Result<Bracket, ScheduleError> {
        check_bots(names.len(), MIN_BOTS, PLAN)?;
        Ok(Bracket::new(self, names))
    }

    /// Whether two bots play for the third place.
    fn has_third_place(self, bots: usize) -> bool {
        self.third_place && bots >= MIN_BOTS_FOR_THIRD_PLACE
    }

    /// The maximum number of games of a meeting.
    fn max_games(self) -> u32 {
        self.best_of.get() + 2 * self.extra_pairs.get()
    }

    /// The least and most matches for this many bots.
    pub(crate) fn bounds(self, bots: usize) -> MatchBounds {
        let meetings = (bots - 1 + usize::from(self.has_third_place(bots))) as u64;
        MatchBounds {
            fewest: meetings * u64::from(self.best_of.get()),
            most: meetings * u64::from(self.max_games()),
        }
    }
}
