//! Plans in rounds: the matches of a round depend on the results of the rounds before.
//!
//! Such a plan is a pure function of the bots' names and the results so far. A [`RoundPlan`] is its
//! value at the beginning of a round: it lists the matches of the round, and [`RoundPlan::finish`]
//! takes their results and gives the next round. When no match follows, [`RoundPlan::ranks`] is the
//! final order. A program that stores the matches repeats the plan from the first round with the
//! stored results. So a new kind of plan needs only a new variant here.

use core::fmt;

use arbiter_games::Score;
use thiserror::Error;

use super::{Bot, Bracket, MatchBounds, PlannedMatch};

/// A plan in rounds, at the beginning of a round.
#[derive(Clone, Debug)]
pub enum RoundPlan {
    /// Meetings of two: the loser is out.
    Knockout(Bracket),
}

/// Why results are not those of a round.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ResultsError {
    /// There are too many or too few results.
    #[error("the round has {matches} matches, and there are {results} results")]
    Count {
        /// The number of planned matches.
        matches: usize,
        /// The number of results.
        results: usize,
    },
    /// A result does not have a score for each seat.
    #[error("result {number} of the round has {actual} scores; the match has {expected} seats")]
    Seats {
        /// The number of the match in the round, from 1.
        number: usize,
        /// The number of scores.
        actual: usize,
        /// The number of seats.
        expected: usize,
    },
}

impl RoundPlan {
    /// The number of bots.
    pub fn bots(&self) -> usize {
        match self {
            Self::Knockout(bracket) => bracket.bots(),
        }
    }

    /// The number of seats of a match.
    pub fn seats(&self) -> usize {
        match self {
            Self::Knockout(_) => super::round_robin::SEATS,
        }
    }

    /// The matches that follow from the results so far, in order. Empty if the plan is over.
    pub fn matches(&self) -> Vec<PlannedMatch> {
        match self {
            Self::Knockout(bracket) => bracket.matches().map(PlannedMatch::from).collect(),
        }
    }

    /// Whether no match follows.
    pub fn is_over(&self) -> bool {
        match self {
            Self::Knockout(bracket) => bracket.is_over(),
        }
    }

    /// Advances with the results of [`Self::matches`], in the same order: for each match the score
    /// of each seat, seat 1 first.
    ///
    /// # Errors
    /// If they are not the results of these matches. Then the plan is unchanged.
    pub fn finish(&mut self, results: &[Vec<Score>]) -> Result<(), ResultsError> {
        check_results(self.matches().iter().map(PlannedMatch::seats), results)?;
        match self {
            Self::Knockout(bracket) => bracket.finish(results),
        }
        Ok(())
    }

    /// The rank of each bot by the results so far, in the order of the bots. Bots with the same
    /// rank share it, and the following ranks are skipped. In a knockout, bots that are still in
    /// share rank 1.
    pub fn ranks(&self) -> Vec<u32> {
        match self {
            Self::Knockout(bracket) => bracket.ranks(),
        }
    }

    /// The least and most matches of the whole plan.
    pub fn bounds(&self) -> MatchBounds {
        match self {
            Self::Knockout(bracket) => bracket.bounds(),
        }
    }
}

/// A summary in one line, for people.
impl fmt::Display for RoundPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MatchBounds { fewest, most } = self.bounds();
        match self {
            Self::Knockout(bracket) => {
                let rounds = counted(bracket.round_count(), "round", "rounds");
                let byes = bracket.bots().next_power_of_two() - bracket.bots();
                write!(f, "knockout of {rounds} with {}", counted(byes, "bye", "byes"))?;
            }
        }
        let range = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
        write!(f, ", {range} matches")
    }
}

/// A number with its noun.
fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// Compares the numbers of results and of their scores with the planned matches.
fn check_results<'a>(
    planned: impl ExactSizeIterator<Item = &'a [Bot]>,
    results: &[Vec<Score>],
) -> Result<(), ResultsError> {
    if planned.len() != results.len() {
        return Err(ResultsError::Count { matches: planned.len(), results: results.len() });
    }
    for (number, (seats, scores)) in (1..).zip(planned.zip(results)) {
        if seats.len() != scores.len() {
            let actual = scores.len();
            return Err(ResultsError::Seats { number, actual, expected: seats.len() });
        }
    }
    Ok(())
}
