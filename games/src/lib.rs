//! The rules of Arbiter's five games, as pure state machines.
//!
//! A match is a function of (game, rules version, parameters, seed, replies, time spent). This
//! crate computes only that function. It is `no_std`, so it cannot use files, sockets, a clock or a
//! hash map with a random order. The [`MatchState`] trait is a match in progress: it
//! returns the messages for the seats and takes their replies. The worker sends the messages and
//! measures the time. It passes each reply and its time to this crate.
//!
//! Each game has one folder and one [`GameInfo`]. [`Games`] is the list of games that a program
//! knows.

#![no_std]

extern crate alloc;

pub mod bitwa;
pub mod blackjack;
mod bounds;
mod clock;
mod episode;
mod games;
pub mod gomoku;
mod gtp;
mod info;
mod match_state;
pub mod move_form;
mod name;
mod parameter;
mod params;
pub mod picture;
mod protocol;
mod quote;
mod rules;
mod score_check;
mod seat;
mod seed;
mod string_enum;
mod time_bank;
pub mod tricks;
mod value;
pub mod wojna;

pub use bounds::{Bounds, Range};
pub use clock::{Allowance, Charge, ClockKind, ClockRules, Micros, MicrosError, TimeSpent};
pub use episode::{Episode, TablePlan};
pub use games::{Games, UnknownGame};
pub use info::{
    BoardInfo, BotGuide, BotInfo, EpisodeInfo, Estimate, ExampleBot, Game, GameInfo, MAX_SEATS,
    Official, PairSeats, ParamsReader, Playground, ProtocolExample, Ranking, ScheduleKind, example,
    read_rules, texts,
};
pub use match_state::{
    ExpectedReply, Forfeit, Fork, Illegal, MatchState, MatchView, Message, Note, Score, SeatResult,
    StartError, Step, TurnPolicy,
};
pub use name::{BotName, BotNameError, EntrantName, split_owner};
pub use parameter::{ParamInfo, ParamInput, ParamKind, Text, param};
pub use params::{Params, seat_counts};
pub use picture::Frame;
pub use protocol::{Framing, Protocol};
pub use rules::{CarriedScore, EpisodeRules, MIXED_TURNS_RULES_VERSION, RULES_VERSION, Rules};
pub use score_check::{ImpossibleScore, MatchScores};
pub use seat::Seat;
pub use seed::{Dice, Seed, SeedError};
pub use value::{ParamsError, Value, Values};
