//! Entrants.

use std::fmt;

/// The number of a version in its edition, from 0. Schedules number their bots in the same way.
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
