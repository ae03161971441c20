//! On which terms a bot takes its seat.

pub use arbiter_proto::limits::{Bytes, BytesError, Limits, Ponder};

/// On which terms a bot takes its seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it may use.
    pub limits: Limits,
    /// What it may do while it owes nothing.
    pub ponder: Ponder,
    /// The processors it runs on, by number; any if there are none.
    pub cores: Vec<usize>,
}
