//! What the scores of a match can be: the least and the most of every component of a seat's score,
//! and of its sum over the seats, as exactly as parameters and forfeits determine them.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The values that a component of a score, or its sum, can have: all from the least to the most.
pub type Range = RangeInclusive<i64>;

/// What the scores of a match can be, given how many seats there are and which of them forfeited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Of each seat, seat 1 first, each component of its score.
    pub seats: Vec<Vec<Range>>,
    /// Of each component, its sum over the seats.
    pub sums: Vec<Range>,
    /// Of each seat, how many bad answers it can have given at most.
    pub bad_answers: Vec<u32>,
}

impl Bounds {
    /// The same bounds for each of so many seats, in a game that counts no bad answers.
    pub(crate) fn alike(seats: usize, components: &[Range], sums: &[Range]) -> Self {
        Self {
            seats: vec![components.to_vec(); seats],
            sums: sums.to_vec(),
            bad_answers: vec![0; seats],
        }
    }
}
