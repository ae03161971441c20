//! Plays matches between programs, locally or as a worker of a coordinator: referee, seats, clocks,
//! sandbox, records.
//!
//! The rules of the games are in `arbiter_games`. This crate sends their requests to programs and
//! returns the replies. Its code depends on no specific game, except where a protocol's framing
//! does.

mod backoff;
pub mod bot;
mod bot_cache;
pub mod bounded_read;
pub mod build;
pub mod bundle;
pub mod bundle_download;
pub mod connect;
mod coordinator_clients;
pub mod fault;
pub mod hints;
mod job;
pub mod match_runner;
pub mod metrics;
pub mod package;
mod package_cache;
pub mod record_writer;
pub mod referee;
pub mod repro;
mod rules_process;
pub mod sandbox;
pub mod seat;
mod slot;
pub mod spool;
pub mod trial;
pub mod worker;
