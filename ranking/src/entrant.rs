//! Entrants.

use std::fmt;

/// A bot with its program, by a number that is the same in all editions of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entrant(pub i32);

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i32> for Entrant {
    fn from(number: i32) -> Self {
        Self(number)
    }
}
