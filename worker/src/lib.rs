//! Plays matches between real programs: referee, seats, clocks, sandbox, records.
//!
//! The rules are in `arbiter_games`; this crate brings their words to programs and the answers
//! back. It knows no game by name, except where a protocol's frame depends on it.

pub mod bot;
pub mod fault;
pub mod record;
pub mod referee;
pub mod sandbox;
pub mod seat;
pub mod table;
