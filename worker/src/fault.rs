//! What goes wrong on our side. A fault is never scored: the match is played again. That a match
//! leaves something which dies slowly is no fault: it counts, and its slot waits.
//!
//! What a bot does wrong is a [`arbiter_games::Forfeit`], another type on purpose: a function that
//! returns both has the forfeit inside its value and the fault as its error, so that neither can
//! be taken for the other.

use std::fmt;

use thiserror::Error;

/// A failure of ours, or an order to stop: what was being done, and the cause.
#[derive(Debug, Error)]
pub enum Fault {
    /// Something of this machine or of the system failed.
    #[error("{what}: {cause}")]
    System {
        /// What was being done, naming the thing.
        what: String,
        /// Why it failed.
        cause: String,
    },
    /// The match was given up because the program is to stop.
    #[error("the match was abandoned")]
    Abandoned,
}

impl Fault {
    /// A fault while doing `what`, for the reason `cause`.
    pub fn new(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::System { what: what.into(), cause: cause.to_string() }
    }
}

/// Says what was being done when something of ours failed.
pub(crate) trait Context<T> {
    /// Turns a failure into a fault while doing `what`.
    fn fault(self, what: &str) -> Result<T, Fault>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn fault(self, what: &str) -> Result<T, Fault> {
        self.map_err(|cause| Fault::new(what, cause))
    }
}
