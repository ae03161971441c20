//! A bank of time for many replies.

use crate::clock::Micros;
use crate::match_state::Allowance;

/// A bot's remaining time. It can become negative, down to minus the margin of the clock rules. So
/// the margin is available once for the whole bank, not once for each reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBank(Micros);

impl TimeBank {
    /// A bank with this time.
    pub(crate) fn new(time: Micros) -> Self {
        Self(time)
    }

    /// The allowance for the next reply.
    pub(crate) fn allowance(self) -> Allowance {
        Allowance::Bank(self.0)
    }

    /// Deducts the cost of a reply.
    pub(crate) fn spend(&mut self, cost: Micros) {
        self.0 -= cost;
    }

    /// Adds time.
    pub(crate) fn credit(&mut self, time: Micros) {
        self.0 += time;
    }

    /// The number for `time_left`: whole milliseconds, rounded down, never negative.
    pub(crate) fn left_millis(self) -> i64 {
        self.0.floor_millis().max(0)
    }
}
