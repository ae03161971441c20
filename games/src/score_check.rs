//! Checks whether the reported scores of a match are possible.
//!
//! A report comes from a worker, which may be dishonest. Each game gives the bounds of every
//! component of a seat's score, and of its sum over the seats, for the parameters and forfeits of a
//! match. [`Params::check`] compares a result with these bounds. Scores within the bounds may still
//! be false: only the record proves them.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use crate::bounds::{Bounds, Range};
use crate::match_state::Forfeit;
use crate::params::Params;

/// The result of a match as it is reported and stored.
#[derive(Clone, Copy, Debug)]
pub struct MatchScores<'a> {
    /// The number of seats.
    pub seats: usize,
    /// The scores of all seats, concatenated, seat 1 first.
    pub scores: &'a [i64],
    /// Each seat's forfeit; empty if no seat forfeited.
    pub forfeits: &'a [Option<Forfeit>],
    /// The number of bad replies of each seat; empty if there were none.
    pub bad_answers: &'a [i32],
}

/// Why a result is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ImpossibleScore(String);

impl Params {
    /// The bounds of the scores, given for each seat whether it forfeited, seat 1 first. `None` if
    /// no match of this game can end with these forfeits.
    pub fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        if !self.seats().contains(&forfeited.len()) {
            return None;
        }
        self.rules().bounds(forfeited)
    }

    /// Checks whether a match can have these scores.
    pub fn check(&self, result: &MatchScores<'_>) -> Result<(), ImpossibleScore> {
        let forfeited: Vec<_> = result.forfeits.iter().map(Option::is_some).collect();
        let forfeited = if forfeited.is_empty() { vec![false; result.seats] } else { forfeited };
        let bounds = self.bounds(&forfeited).filter(|_| forfeited.len() == result.seats);
        let bounds = bounds.ok_or_else(|| {
            let game = self.game();
            let seats = result.seats;
            let forfeits = forfeited.iter().filter(|forfeited| **forfeited).count();
            ImpossibleScore(format!(
                "no match of {game} with {seats} seats ends with {forfeits} forfeits"
            ))
        })?;
        self.check_within(&bounds, result)
    }

    /// Checks the scores like [`Params::check`], with bounds that fit the seats and their forfeits.
    pub fn check_within(
        &self,
        bounds: &Bounds,
        result: &MatchScores<'_>,
    ) -> Result<(), ImpossibleScore> {
        let columns = &self.game().columns;
        let numbers = result.scores.len();
        let expected = columns.len() * bounds.seats.len();
        if numbers != expected {
            let error = format!("the scores of all seats have {numbers} numbers, not {expected}");
            return Err(ImpossibleScore(error));
        }
        let scores = result.scores.chunks_exact(columns.len());
        for ((seat, score), ranges) in (1..).zip(scores).zip(&bounds.seats) {
            for ((column, value), range) in columns.iter().zip(score).zip(ranges) {
                check_range(column, seat, *value, range)?;
            }
            if !self.rules().agrees(score) {
                let error = format!("the score of seat {seat} contradicts itself: {score:?}");
                return Err(ImpossibleScore(error));
            }
        }
        for ((seat, bad_answers), max) in (1..).zip(result.bad_answers).zip(&bounds.bad_answers) {
            check_range("bad replies", seat, (*bad_answers).into(), &(0..=i64::from(*max)))?;
        }
        for (index, (column, range)) in columns.iter().zip(&bounds.sums).enumerate() {
            let parts = result.scores.iter().skip(index).step_by(columns.len());
            let value: i128 = parts.copied().map(i128::from).sum();
            let min = *range.start();
            let max = *range.end();
            if !(i128::from(min)..=i128::from(max)).contains(&value) {
                return Err(ImpossibleScore(format!(
                    "{column} of all seats cannot add up to {value}: from {min} to {max} are possible"
                )));
            }
        }
        Ok(())
    }
}

/// Checks that a number of a seat is within its range.
fn check_range(
    quantity: &str,
    seat: usize,
    value: i64,
    range: &Range,
) -> Result<(), ImpossibleScore> {
    if range.contains(&value) {
        return Ok(());
    }
    let min = *range.start();
    let max = *range.end();
    Err(ImpossibleScore(format!(
        "{quantity} of seat {seat} cannot be {value}: from {min} to {max} are possible"
    )))
}
