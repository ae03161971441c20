//! The coordinator: plans tournaments into a Postgres queue, hands matches to workers, counts what
//! they report. The only crate that names Postgres.
//!
//! Everything goes through [`db`]; [`tournament`] makes editions of files, and lots of editions.

pub mod access;
mod backoff;
pub mod boards;
mod bucket;
pub mod cache;
pub mod clearing;
pub mod clock;
mod connections;
pub mod coordinator;
pub mod db;
pub mod leader;
pub mod maintenance;
pub mod match_audit;
pub mod metrics;
mod parts;
pub mod postgres;
pub mod queue;
pub mod redact;
pub mod reply_times;
pub mod rpc;
pub mod service;
pub mod standing_down;
pub mod store;
pub mod suspension;
pub mod tournament;
pub mod tricks_http;
pub mod voiding;
pub mod web;
