//! A planned match of any kind of schedule, and the number of matches where results decide it.

use core::fmt;

use super::foursomes;
use super::tables::SeatedBots;
use super::{Bot, Pairing};

/// A planned match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedMatch {
    /// The index of the board, from 0.
    pub board: u16,
    /// The number of earlier matches of the pair on this board, on both sides, or of a bot alone; 0
    /// at tables.
    pub leg: u32,
    bots: SeatedBots,
    seats: usize,
}

impl PlannedMatch {
    /// The bots, seat 1 first.
    pub fn seats(&self) -> &[Bot] {
        &self.bots[..self.seats]
    }

    /// The bots in ascending order.
    pub(crate) fn sorted_bots(&self) -> Vec<Bot> {
        let mut bots = self.seats().to_vec();
        bots.sort_unstable();
        bots
    }

    /// The same match with another leg.
    pub(crate) fn with_leg(self, leg: u32) -> Self {
        Self { leg, ..self }
    }

    /// The same match of other bots: those that `bot` gives.
    pub(crate) fn with_bots(mut self, bot: impl Fn(Bot) -> Bot) -> Self {
        for seat in &mut self.bots[..self.seats] {
            *seat = bot(*seat);
        }
        self
    }

    pub(super) fn new<const SEATS: usize>(board: u16, leg: u32, bots: [Bot; SEATS]) -> Self {
        let mut seated = SeatedBots::default();
        seated[..SEATS].copy_from_slice(&bots);
        Self { board, leg, bots: seated, seats: SEATS }
    }

    pub(super) fn table(bots: foursomes::Table) -> Self {
        Self::new(0, 0, bots)
    }

    /// A table with this many of the bots.
    pub(super) fn seated(bots: SeatedBots, seats: usize) -> Self {
        Self { board: 0, leg: 0, bots, seats }
    }
}

impl From<Pairing> for PlannedMatch {
    fn from(Pairing { board, leg, seats }: Pairing) -> Self {
        Self::new(board, leg, seats)
    }
}

impl AsRef<[Bot]> for PlannedMatch {
    fn as_ref(&self) -> &[Bot] {
        self.seats()
    }
}

/// The least and most matches of a plan, over all possible results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchBounds {
    /// The fewest matches.
    pub fewest: u64,
    /// The most matches.
    pub most: u64,
}

impl MatchBounds {
    /// Always this many matches.
    pub(super) fn exact(matches: u64) -> Self {
        Self { fewest: matches, most: matches }
    }
}

impl core::iter::Sum for MatchBounds {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::exact(0), |sum, one| Self {
            fewest: sum.fewest + one.fewest,
            most: sum.most + one.most,
        })
    }
}

/// As text, for people.
impl fmt::Display for MatchBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { fewest: 1, most: 1 } => f.write_str("1 match"),
            Self { fewest, most } if fewest == most => write!(f, "{most} matches"),
            Self { fewest, most } => write!(f, "{fewest} to {most} matches"),
        }
    }
}

/// A number with its noun.
pub(crate) fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}
