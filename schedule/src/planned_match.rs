//! A planned match of any kind of schedule, and the number of matches where results decide it.

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
