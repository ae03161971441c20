//! What an official tournament is made of, from its schedule to its results.
//!
//! [`schedule`] says who plays whom in which seats. It is pure: the same configuration, number of
//! bots and seed give the same matches, whoever asks and whenever.

pub mod schedule;
