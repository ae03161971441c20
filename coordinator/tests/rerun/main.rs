//! Editions that reuse earlier results: when bots enter, change or leave, only their matches are
//! played, and the leaderboard equals that of a tournament played with the final versions from the
//! beginning. On real Postgres, with workers that derive the result of a match from its assignment.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod auto_editions;
mod fixture;
mod joins;
mod resubmissions;
mod state_dependencies;
#[path = "../support/mod.rs"]
mod support;
