//! Tournaments from their files to their leaderboards. The tests use real Postgres, and workers
//! that derive the result of a match from its assignment.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod beacon;
mod episodes;
mod fixture;
mod incremental_plans;
mod lifecycle;
mod lot_assignment;
mod plans;
mod play;
mod rounds;
mod statistics;
#[path = "../support/mod.rs"]
mod support;
