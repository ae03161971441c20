//! Faults: errors of the system. A fault is never scored; the match is played again. Processes that
//! die slowly after a match are no fault: the match counts, and its slot waits for their end.
//!
//! An error of a bot is an [`arbiter_games::Forfeit`]. A function that can return both returns the
//! forfeit inside its value and the fault as its error, so that callers cannot confuse them.

use std::fmt;

use thiserror::Error;

/// An error of the system, or a stop request.
#[derive(Debug, Error)]
pub enum Fault {
    /// An operation of the system failed.
    #[error("{what}: {cause}")]
    System {
        /// The failed operation, for example "cannot read a record".
        what: String,
        /// The cause.
        cause: String,
    },
    /// The rules of a game package failed.
    #[error("the rules failed: {0}")]
    Rules(String),
    /// A stop request ended the match.
    #[error("the match was abandoned")]
    Abandoned,
}

impl Fault {
    /// A fault of the operation `what` with its cause.
    pub fn new(what: impl Into<String>, cause: impl fmt::Display) -> Self {
        Self::System { what: what.into(), cause: cause.to_string() }
    }
}

/// Turns errors into faults.
pub(crate) trait Context<T> {
    /// Turns an error into a fault of the operation `what`.
    fn fault(self, what: &str) -> Result<T, Fault>;
}

impl<T, E: fmt::Display> Context<T> for Result<T, E> {
    fn fault(self, what: &str) -> Result<T, Fault> {
        self.map_err(|cause| Fault::new(what, cause))
    }
}
