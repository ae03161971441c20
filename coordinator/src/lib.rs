//! The coordinator: plans tournaments into a Postgres queue, hands matches to workers, counts what
//! they report. The only crate that names Postgres.
//!
//! [`schedule`] and [`ranking`] are pure: the same input gives the same output, whoever asks and
//! whenever. Everything else goes through [`db`].

pub mod db;
pub mod postgres;
pub mod queue;
pub mod ranking;
pub mod schedule;
