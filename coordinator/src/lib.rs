//! The coordinator: plans tournaments into a Postgres queue, leases matches to workers, and counts
//! their reports. This is the only crate that depends on Postgres.
//!
//! All SQL is in [`db`]. [`tournament`] plans editions from tournament files, and divides their
//! matches into lots.

pub mod access;
mod background;
mod backoff;
pub mod bot_suspension;
mod boxed_future;
pub mod cache;
mod connection_limit;
pub mod coordinator;
pub mod database_clock;
pub mod db;
pub mod game_package;
mod keyed_tasks;
pub mod leader_election;
pub mod leaderboard_cache;
pub mod maintenance;
pub mod match_audit;
pub mod match_invalidation;
pub mod metrics;
pub mod postgres;
pub mod queue;
mod rate_limit;
pub mod record_redaction;
pub mod record_store;
pub mod reply_times;
pub mod retention;
pub mod rpc;
pub mod service;
pub mod tournament;
pub mod tricks_http;
pub mod web;
pub mod worker_suspension;
