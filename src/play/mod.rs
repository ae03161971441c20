//! Matches on this machine, without server or database.

pub(crate) mod author_hints;
pub(crate) mod bots;
pub(crate) mod comparison;
pub(crate) mod distinct_games;
pub(crate) mod game;
pub(crate) mod output;
pub(crate) mod params;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod record_file;
pub(crate) mod recorded_packages;
pub(crate) mod run;
pub(crate) mod slots;
pub(crate) mod tally;
