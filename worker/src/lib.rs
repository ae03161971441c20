//! Plays matches between real programs: referee, seats, clocks, sandbox, records; for one's own
//! pleasure or, as a worker, for a coordinator.
//!
//! The rules are in `arbiter_games`; this crate brings their words to programs and the answers
//! back. It knows no game by name, except where a protocol's frame depends on it.

mod backoff;
pub mod bot;
mod bot_cache;
pub mod bounded_read;
pub mod build;
pub mod bundle;
pub mod connect;
mod coordinator_clients;
pub mod fault;
mod job;
pub mod match_runner;
pub mod metrics;
pub mod record;
pub mod referee;
pub mod replay_seat;
pub mod sandbox;
pub mod seat;
mod slot;
pub mod spool;
pub mod trial;
pub mod worker;
