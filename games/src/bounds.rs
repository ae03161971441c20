//! Bounds of the scores of a match: the minimum and maximum of every component of a seat's score,
//! and of its sum over the seats. They follow from the parameters and the forfeits.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

/// The possible values of a component of a score, or of its sum.
pub type Range = RangeInclusive<i64>;

/// The bounds of a match's scores, given the number of seats and which of them forfeited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The range of each component of each seat's score, seat 1 first.
    pub seats: Vec<Vec<Range>>,
    /// The range of each component's sum over the seats.
    pub sums: Vec<Range>,
    /// The maximum number of bad replies of each seat.
    pub bad_answers: Vec<u32>,
}

impl Bounds {
    /// The same bounds for each seat, in a game that counts no bad replies.
    pub(crate) fn alike(seats: usize, components: &[Range], sums: &[Range]) -> Self {
        Self {
            seats: vec![components.to_vec(); seats],
            sums: sums.to_vec(),
            bad_answers: vec![0; seats],
        }
    }
}
