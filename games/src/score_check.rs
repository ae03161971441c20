//! Whether the scores of a match can be what they are reported to be.
//!
//! A report comes from a worker, which need not be honest. Each game declares the least and the most
//! of every component of a seat's score, and of its sum over the seats, as exactly as parameters and
//! forfeits determine them; [`Params::check`] compares a result with them. What lies within may still
//! be invented: only the record tells.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use crate::bounds::{Bounds, Range};
use crate::match_state::Forfeit;
use crate::params::Params;

/// How a match ended, as it is reported and stored.
#[derive(Clone, Copy, Debug)]
pub struct MatchScores<'a> {
    /// How many seats the table had.
    pub seats: usize,
    /// Every seat's score in a row, seat 1 first.
    pub scores: &'a [i64],
    /// Each seat's forfeit; nothing if no seat forfeited.
    pub forfeits: &'a [Option<Forfeit>],
    /// Each seat's bad answers; nothing if there were none.
    pub bad_answers: &'a [i32],
}

/// Why a result cannot be that of a match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ImpossibleScore(String);

impl Params {
    /// What the scores can be when these seats forfeited, seat 1 first; nothing if no match of this
    /// game can end so.
    pub fn bounds(&self, forfeited: &[bool]) -> Option<Bounds> {
        if !self.seats().contains(&forfeited.len()) {
            return None;
        }
        self.rules().bounds(forfeited)
    }

    /// Looks whether a match can have ended so, as far as scores show it.
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

    /// The same where the bounds are known that follow from the seats and their forfeits.
    pub fn check_within(
        &self,
        bounds: &Bounds,
        ended: &MatchScores<'_>,
    ) -> Result<(), ImpossibleScore> {
        let columns = &self.game().columns;
        let (found, due) = (ended.scores.len(), columns.len() * bounds.seats.len());
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
            let (least, most) = (*range.start(), *range.end());
            if !(i128::from(least)..=i128::from(most)).contains(&value) {
                return Err(ImpossibleScore(format!(
                    "{what} of all seats cannot add up to {value}: from {least} to {most} are possible"
                )));
            }
        }
        Ok(())
    }
}

/// Looks whether a number of a seat is one of those possible.
fn within(what: &str, seat: usize, value: i64, range: &Range) -> Result<(), ImpossibleScore> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (*range.start(), *range.end());
    Err(ImpossibleScore(format!(
        "{what} of seat {seat} cannot be {value}: from {least} to {most} are possible"
    )))
}
