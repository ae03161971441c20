//! Editions that take over what was played: whatever comes, changes or goes, only the matches of
//! those who did are played, and the leaderboard is that of a tournament which was played with the
//! final versions from the beginning. On real Postgres, with workers that draw what a match comes to
//! from what they are told about it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod auto_editions;
mod fixture;
mod joins;
mod resubmissions;
mod state_dependencies;
#[path = "../support/mod.rs"]
mod support;
