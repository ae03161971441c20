//! Editions that take over what was played: whatever comes, changes or goes, only the matches of
//! those who did are played, and the leaderboard is that of a tournament which was played with the
//! final versions from the beginning. On real Postgres, with workers that draw what a match comes to
//! from what they are told about it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod chains;
mod field;
mod joins;
mod openings;
mod resubmissions;
#[path = "../support/mod.rs"]
mod support;
