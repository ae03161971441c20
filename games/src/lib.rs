//! The rules of Arbiter's five games, as pure state machines.
//!
//! A match is a function of (game, rules version, parameters, seed, replies, time spent). This
//! crate computes that function and nothing else: it is `no_std`, so neither files nor sockets
//! nor a clock nor a hash map with a random order can be reached from here. What a game says to
//! whom, what it expects back and what it makes of it is the [`Game`] trait; how words reach a
//! program and how long it took is the worker's business, and arrives here as arguments.
//!
//! One game, one module, one implementation of [`Game`]; [`Params`] is the way in.

#![no_std]

extern crate alloc;

mod bank;
pub mod bitwa;
pub mod blackjack;
mod bounds;
mod clock;
mod game;
pub mod gomoku;
mod gtp;
mod name;
mod parameter;
mod params;
mod quote;
mod seed;
mod string_enum;
pub mod tricks;
pub mod wojna;

pub use bounds::{Bounds, Impossible, MatchScores, Range};
pub use clock::{Charge, ClockKind, ClockRules, Micros, MicrosError, Spent};
pub use game::{
    Allowance, Forfeit, Game, Illegal, Note, Owes, Say, Score, Seat, Standing, StartError, Step,
    TurnPolicy, View,
};
pub use name::{BotName, BotNameError};
pub use params::{GameName, Params, UnknownGame};
pub use seed::{Dice, Seed, SeedError};

/// The version of the rules in this crate, written into each record. It grows when the same
/// replies to the same seed would no longer give the same scores.
pub const RULES_VERSION: &str = "1";

/// The version of the rules in matches between a bot that is asked for all tables at once and one
/// that is not ([`TurnPolicy`]). Under [`RULES_VERSION`] both were asked for any.
pub const MIXED_TURNS_RULES_VERSION: &str = "2";
