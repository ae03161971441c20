//! Tournaments from their files to their leaderboards, on real Postgres, with workers that draw
//! what a match comes to from what they are told about it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod beacon;
mod episodes;
mod fixture;
mod incremental_plans;
mod lifecycle;
mod lot_assignment;
mod plans;
mod play;
#[path = "../support/mod.rs"]
mod support;
