//! Editions that reuse earlier results. When bots enter, change or leave, only their matches are
//! played. The leaderboard equals the leaderboard of a tournament that starts with the final
//! versions. The tests use real Postgres, and workers that derive the result of a match from its
//! assignment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod auto_editions;
mod fixture;
mod histories;
mod joins;
mod killed_openings;
mod resubmissions;
mod state_dependencies;
#[path = "../support/mod.rs"]
mod support;
