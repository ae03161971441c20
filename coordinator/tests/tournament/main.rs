//! Tournaments from their files to their leaderboards, on real Postgres, with workers that draw
//! what a match comes to from what they are told about it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod beacon;
mod begin_and_end;
mod episodes;
mod growing;
mod handout;
mod plans;
mod play;
mod stage;
#[path = "../support/mod.rs"]
mod support;
