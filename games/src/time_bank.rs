//! A bank of time for many answers.

use crate::clock::Micros;
use crate::match_state::Allowance;

/// What is left of a bot's time. It may fall below zero by as much as the margin of the clock
/// rules, so that the margin is granted once a bank and not once an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBank(Micros);

impl TimeBank {
    /// A bank with `time` in it.
    pub(crate) fn new(time: Micros) -> Self {
        Self(time)
    }

    /// What the next answer may take.
    pub(crate) fn allowance(self) -> Allowance {
        Allowance::Bank(self.0)
    }

    /// Takes out what an answer cost.
    pub(crate) fn spend(&mut self, cost: Micros) {
        self.0 -= cost;
    }

    /// Puts time in.
    pub(crate) fn credit(&mut self, time: Micros) {
        self.0 += time;
    }

    /// What `time_left` says: whole milliseconds, rounded down, never negative.
    pub(crate) fn left_millis(self) -> i64 {
        self.0.floor_millis().max(0)
    }
}
