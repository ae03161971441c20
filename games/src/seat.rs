//! Seats of a table.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A seat of a table, numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seat(u8);

impl Seat {
    /// The seat at `index`, counted from 0.
    ///
    /// # Panics
    /// If `index` is more than 254.
    pub fn from_index(index: usize) -> Self {
        Self(u8::try_from(index + 1).expect("a table has fewer than 255 seats"))
    }

    /// The position of this seat in a list of seats, counted from 0.
    pub fn index(self) -> usize {
        usize::from(self.0) - 1
    }

    /// The number of this seat, counted from 1.
    pub fn number(self) -> u8 {
        self.0
    }

    /// The seats of a table with `count` seats, in order.
    pub fn all(count: usize) -> impl DoubleEndedIterator<Item = Self> + Clone {
        (0..count).map(Self::from_index)
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
