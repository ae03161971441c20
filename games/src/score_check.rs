//! Checks whether the reported scores of a match are possible.
//!
//! A report comes from a worker, which may be dishonest. Each game declares the bounds of every
//! component of a seat's score, and of its sum over the seats, as exactly as parameters and forfeits
//! determine them; [`Params::check`] compares a result with them. Scores within the bounds may still
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
    /// Each seat's bad answers; empty if there were none.
    pub bad_answers: &'a [i32],
}

/// Why a result is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ImpossibleScore(String);

impl Params {
    /// The bounds of the scores when these seats forfeited, seat 1 first; `None` if no match of this
    /// game can end so.
    pub fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        if !self.seats().contains(&forfeited.len()) {
            return None;
        }
        self.rules().bounds(forfeited)
    }

    /// Checks whether a match can have these scores.
    pub fn check(&self, ended: &MatchScores<'_>) -> Result<(), ImpossibleScore> {
        let forfeited: Vec<_> = ended.forfeits.iter().map(Option::is_some).collect();
        let forfeited = if forfeited.is_empty() { vec![false; ended.seats] } else { forfeited };
        let bounds = self.bounds(&forfeited).filter(|_| forfeited.len() == ended.seats);
        let bounds = bounds.ok_or_else(|| {
            let game = self.game();
            let seats = ended.seats;
            let forfeits = forfeited.iter().filter(|forfeited| **forfeited).count();
            ImpossibleScore(format!(
                "no match of {game} with {seats} seats ends with {forfeits} forfeits"
            ))
        })?;
        self.check_within(&bounds, ended)
    }

    /// The same with known bounds for the seats and their forfeits.
    pub fn check_within(
        &self,
        bounds: &Bounds,
        ended: &MatchScores<'_>,
    ) -> Result<(), ImpossibleScore> {
        let columns = &self.game().columns;
        let found = ended.scores.len();
        let due = columns.len() * bounds.seats.len();
        if found != due {
            let error = format!("the scores of all seats have {found} numbers, not {due}");
            return Err(ImpossibleScore(error));
        }
        let scores = ended.scores.chunks_exact(columns.len());
        for ((seat, score), ranges) in (1..).zip(scores).zip(&bounds.seats) {
            for ((what, value), range) in columns.iter().zip(score).zip(ranges) {
                within(what, seat, *value, range)?;
            }
            if !self.rules().agrees(score) {
                let error = format!("the score of seat {seat} contradicts itself: {score:?}");
                return Err(ImpossibleScore(error));
            }
        }
        for ((seat, bad), most) in (1..).zip(ended.bad_answers).zip(&bounds.bad_answers) {
            within("bad answers", seat, (*bad).into(), &(0..=i64::from(*most)))?;
        }
        for (index, (what, range)) in columns.iter().zip(&bounds.sums).enumerate() {
            let parts = ended.scores.iter().skip(index).step_by(columns.len());
            let value: i128 = parts.copied().map(i128::from).sum();
            let least = *range.start();
            let most = *range.end();
            if !(i128::from(least)..=i128::from(most)).contains(&value) {
                return Err(ImpossibleScore(format!(
                    "{what} of all seats cannot add up to {value}: from {least} to {most} are possible"
                )));
            }
        }
        Ok(())
    }
}

/// Checks that a number of a seat is within its range.
fn within(what: &str, seat: usize, value: i64, range: &Range) -> Result<(), ImpossibleScore> {
    if range.contains(&value) {
        return Ok(());
    }
    let least = *range.start();
    let most = *range.end();
    Err(ImpossibleScore(format!(
        "{what} of seat {seat} cannot be {value}: from {least} to {most} are possible"
    )))
}
