//! Plans in rounds: the matches of a round depend on the results of the rounds before.
//!
//! Such a plan is a pure function of the bots' names and the results so far. Its value at the
//! beginning of a round lists the matches of the round. [`Rounds::finish`] takes their results and
//! advances to the next round. When no match follows, [`Rounds::ranks`] is the final order. A
//! program that stores the matches repeats the plan from the first round with the stored results.

use arbiter_games::Score;
use thiserror::Error;

use super::{Bot, MatchBounds, PlannedMatch};

/// A plan in rounds, at the beginning of a round.
pub trait Rounds {
    /// The number of bots.
    fn bots(&self) -> usize;

    /// The number of seats of a match.
    fn seats(&self) -> usize;

    /// The matches that follow from the results so far, in order. Empty if the plan is over.
    fn matches(&self) -> Vec<PlannedMatch>;

    /// Whether no match follows.
    fn is_over(&self) -> bool;

    /// Advances with the results of [`Self::matches`]; [`Self::finish`] has checked them.
    fn advance(&mut self, results: &[Vec<Score>]);

    /// The rank of each bot by the results so far, in the order of the bots. Bots with the same
    /// rank share it, and the following ranks are skipped.
    fn ranks(&self) -> Vec<u32>;

    /// The least and most matches of the whole plan.
    fn bounds(&self) -> MatchBounds;

    /// Advances with the results of [`Self::matches`], in the same order: for each match the score
    /// of each seat, seat 1 first.
    ///
    /// # Errors
    /// If they are not the results of these matches. Then the plan is unchanged.
    fn finish(&mut self, results: &[Vec<Score>]) -> Result<(), ResultsError> {
        check_results(self.matches().iter().map(PlannedMatch::seats), results)?;
        self.advance(results);
        Ok(())
    }
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

/// Adds a score to the sums of scores: one number for each component.
pub(crate) fn add_score(sums: &mut Vec<i128>, score: &Score) {
    if sums.len() < score.0.len() {
        sums.resize(score.0.len(), 0);
    }
    for (sum, part) in sums.iter_mut().zip(&score.0) {
        *sum += i128::from(*part);
    }
}
