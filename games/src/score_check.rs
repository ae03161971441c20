//! Whether the scores of a match can be what they are reported to be.
//!
//! A report comes from a worker, which need not be honest. Each game declares the least and the most
//! of every component of a seat's score, and of its sum over the seats, as exactly as parameters and
//! forfeits determine them; [`Params::check`] compares a result with them. What lies within may still
//! be invented: only the record tells.

use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use crate::bounds::{Bounds, Range};
use crate::info::{Game, Text};
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
pub enum Impossible {
    /// A match has another number of seats, or these seats cannot forfeit in one match.
    #[error("no match of {game} with {seats} seats ends with {forfeits} forfeits")]
    Seats {
        /// The game.
        game: Game,
        /// How many seats the result has.
        seats: usize,
        /// How many of them forfeited.
        forfeits: usize,
    },
    /// There are more or fewer numbers than the seats' scores have.
    #[error("the scores of all seats have {found} numbers, not {due}")]
    Numbers {
        /// How many numbers there are.
        found: usize,
        /// How many there should be.
        due: usize,
    },
    /// A number is out of bounds.
    #[error("{what} of seat {seat} cannot be {value}: from {least} to {most} are possible")]
    Seat {
        /// What the number counts.
        what: Text,
        /// The seat, from 1.
        seat: usize,
        /// The number.
        value: i64,
        /// The least possible.
        least: i64,
        /// The most possible.
        most: i64,
    },
    /// A sum over the seats is out of bounds.
    #[error("{what} of all seats cannot add up to {value}: from {least} to {most} are possible")]
    Sum {
        /// What the numbers count.
        what: Text,
        /// Their sum.
        value: i128,
        /// The least possible.
        least: i64,
        /// The most possible.
        most: i64,
    },
    /// Components contradict each other.
    #[error("the score of seat {seat} contradicts itself: {score:?}")]
    Contradiction {
        /// The seat, from 1.
        seat: usize,
        /// Its score.
        score: Vec<i64>,
    },
}

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
    ///
    /// # Errors
    /// [`Impossible`] if it cannot.
    pub fn check(&self, ended: &MatchScores<'_>) -> Result<(), Impossible> {
        let forfeited: Vec<_> = ended.forfeits.iter().map(Option::is_some).collect();
        let forfeited = if forfeited.is_empty() { vec![false; ended.seats] } else { forfeited };
        let bounds = self.bounds(&forfeited).filter(|_| forfeited.len() == ended.seats);
        let bounds = bounds.ok_or_else(|| Impossible::Seats {
            game: self.game().clone(),
            seats: ended.seats,
            forfeits: forfeited.iter().filter(|forfeited| **forfeited).count(),
        })?;
        self.check_within(&bounds, ended)
    }

    /// The same where the bounds are known that follow from the seats and their forfeits.
    ///
    /// # Errors
    /// [`Impossible`] if it cannot.
    pub fn check_within(&self, bounds: &Bounds, ended: &MatchScores<'_>) -> Result<(), Impossible> {
        let columns = &self.game().columns;
        let (found, due) = (ended.scores.len(), columns.len() * bounds.seats.len());
        if found != due {
            return Err(Impossible::Numbers { found, due });
        }
        let scores = ended.scores.chunks_exact(columns.len());
        for ((seat, score), ranges) in (1..).zip(scores).zip(&bounds.seats) {
            for ((what, value), range) in columns.iter().zip(score).zip(ranges) {
                within(what, seat, *value, range)?;
            }
            if !self.rules().agrees(score) {
                return Err(Impossible::Contradiction { seat, score: score.to_vec() });
            }
        }
        for ((seat, bad), most) in (1..).zip(ended.bad_answers).zip(&bounds.bad_answers) {
            within(&Text::Borrowed("bad answers"), seat, (*bad).into(), &(0..=i64::from(*most)))?;
        }
        for (index, (what, range)) in columns.iter().zip(&bounds.sums).enumerate() {
            let parts = ended.scores.iter().skip(index).step_by(columns.len());
            let value = parts.copied().map(i128::from).sum();
            let (least, most) = (*range.start(), *range.end());
            if !(i128::from(least)..=i128::from(most)).contains(&value) {
                return Err(Impossible::Sum { what: what.clone(), value, least, most });
            }
        }
        Ok(())
    }
}

/// Looks whether a number of a seat is one of those possible.
fn within(what: &Text, seat: usize, value: i64, range: &Range) -> Result<(), Impossible> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = (*range.start(), *range.end());
    Err(Impossible::Seat { what: what.clone(), seat, value, least, most })
}
