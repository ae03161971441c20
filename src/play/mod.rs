//! Matches on this machine, without server or database.

pub(crate) mod entries;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod settings;
pub(crate) mod slots;
pub(crate) mod tally;
