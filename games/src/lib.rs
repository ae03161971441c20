//! The rules of Arbiter's five games, as pure state machines.
//!
//! A match is a function of (game, rules version, parameters, seed, replies, time spent). This
//! crate computes that function and nothing else: it is `no_std`, so neither files nor sockets
//! nor a clock nor a hash map with a random order can be reached from here. What a game says to
//! whom, what it expects back and what it makes of it is the [`MatchState`] trait; how words reach a
//! program and how long it took is the worker's business, and arrives here as arguments.
//!
//! One game, one folder, one [`GameInfo`]; [`Games`] are those that a program knows.

#![no_std]

extern crate alloc;

mod bank;
pub mod bitwa;
pub mod blackjack;
mod bounds;
mod clock;
mod episode;
pub mod gomoku;
mod gtp;
mod info;
mod match_state;
pub mod moves;
mod name;
mod parameter;
mod params;
pub mod picture;
mod protocol;
mod quote;
mod rules;
mod seed;
mod string_enum;
pub mod tricks;
mod value;
pub mod wojna;

pub use bounds::{Bounds, Impossible, MatchScores, Range};
pub use clock::{Charge, ClockKind, ClockRules, Micros, MicrosError, Spent};
pub use episode::{Carried, Episode, EpisodeRules, TablePlan};
pub use info::{
    BoardInfo, BotInfo, EpisodeInfo, Estimate, Family, Game, GameInfo, Games, MOST_SEATS, Official,
    PairSeats, ParamInfo, ParamKind, Phrase, Playground, Ranking, Reader, Text, UnknownGame, param,
    phrase, texts,
};
pub use match_state::{
    Allowance, Forfeit, Illegal, MatchState, MatchView, Note, Owes, Say, Score, Seat, Standing,
    StartError, Step, TurnPolicy,
};
pub use name::{BotName, BotNameError};
pub use params::{Params, seats_due};
pub use protocol::{Framing, Protocol};
pub use rules::Rules;
pub use seed::{Dice, Seed, SeedError};
pub use value::{ParamsError, Value, Values};

/// The version of the rules of the built-in games, written into each record. It grows when the same
/// replies to the same seed would no longer give the same scores.
pub const RULES_VERSION: &str = "1";

/// The version of the rules in matches between a bot that is asked for all tables at once and one
/// that is not ([`TurnPolicy`]). Under [`RULES_VERSION`] both were asked for any.
pub const MIXED_TURNS_RULES_VERSION: &str = "2";
