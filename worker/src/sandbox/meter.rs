//! Processor time of a bot where no control group measures it.
//!
//! The clock of each live process that we started, with all its threads, and what ended ones and
//! their waited-for children used. A live grandchild, and one that nobody waited for, escapes:
//! only a control group counts those.

use arbiter_games::Micros;

use super::process;

/// Adds up processor time over the processes of one jail.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Of processes that have ended.
    ended: Micros,
}

impl Meter {
    /// Takes note of a process that ended, and of what it used with its children.
    pub(super) fn ended(&mut self, used: Micros) {
        self.ended += used;
    }

    /// What all of them used so far.
    pub(super) fn cpu(&self, live: &[libc::pid_t]) -> Micros {
        live.iter().fold(self.ended, |sum, pid| sum + process::clock(*pid))
    }
}
