//! Who is ranked.

use std::fmt;

/// A version's number in its edition, counted from 0, as schedules number their bots.
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
