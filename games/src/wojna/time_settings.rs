//! The clock of GTP: time for the first moves, and more time for each group of later moves.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use crate::clock::Micros;
use crate::match_state::Allowance;
use crate::time_bank::TimeBank;
use crate::value::ParamsError;

/// The arguments of `time_settings` ("Zarządzanie czasem"). As text: `T/M/t/m`, with `T`
/// milliseconds for the first `M` moves, and `t` milliseconds for each `m` moves afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeSettings {
    /// The initial time in milliseconds; greater than 0.
    first_millis: u32,
    /// The number of moves for the initial time; at least 1.
    first_moves: u32,
    /// The time that is added for each group of later moves, in milliseconds.
    more_millis: u32,
    /// The number of moves of such a group; at least 1.
    more_moves: u32,
}

impl Default for TimeSettings {
    /// The official clock: 30 seconds for the first 1000 moves, then 3 seconds for every 100 moves
    /// ("Rozgrywki").
    fn default() -> Self {
        Self { first_millis: 30_000, first_moves: 1000, more_millis: 3000, more_moves: 100 }
    }
}

impl FromStr for TimeSettings {
    type Err = ParamsError;

    fn from_str(text: &str) -> Result<Self, ParamsError> {
        let error = || {
            ParamsError::new(format_args!(
                "clock cannot be `{text}`: write T/M/t/m, T ms for the first M moves and t ms for \
                 each m moves more, as in 30000/1000/3000/100; T, M and m are at least 1, and none \
                 is more than {}",
                u32::MAX
            ))
        };
        let digits = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let mut parts = text.split('/').map(str::trim);
        let mut number = || parts.next().filter(digits)?.parse::<u32>().ok();
        let numbers = [number(), number(), number(), number()];
        let [Some(first_millis), Some(first_moves), Some(more_millis), Some(more_moves)] = numbers
        else {
            return Err(error());
        };
        if parts.next().is_some() || [first_millis, first_moves, more_moves].contains(&0) {
            return Err(error());
        }
        Ok(Self { first_millis, first_moves, more_millis, more_moves })
    }
}

impl fmt::Display for TimeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_millis, first_moves, more_millis, more_moves } = self;
        write!(f, "{first_millis}/{first_moves}/{more_millis}/{more_moves}")
    }
}

impl TimeSettings {
    /// The `time_settings` command.
    pub(super) fn command(self) -> String {
        let Self { first_millis, first_moves, more_millis, more_moves } = self;
        alloc::format!("time_settings {first_millis} {first_moves} {more_millis} {more_moves}")
    }
}

/// The clock of one seat in one deal.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeatClock {
    settings: TimeSettings,
    bank: TimeBank,
    /// The number of moves until time is added; at least 1.
    moves_left: u32,
}

impl SeatClock {
    /// A clock at its start.
    pub(super) fn new(settings: TimeSettings) -> Self {
        let bank = TimeBank::new(millis(settings.first_millis));
        Self { settings, bank, moves_left: settings.first_moves }
    }

    /// The allowance for the next reply.
    pub(super) fn allowance(self) -> Allowance {
        self.bank.allowance()
    }

    /// Deducts the cost of a reply.
    pub(super) fn spend(&mut self, cost: Micros) {
        self.bank.spend(cost);
    }

    /// Counts a move. Adds time after the last move of a group.
    pub(super) fn count_move(&mut self) {
        self.moves_left -= 1;
        if self.moves_left == 0 {
            self.bank.credit(millis(self.settings.more_millis));
            self.moves_left = self.settings.more_moves;
        }
    }

    /// The `time_left` command.
    pub(super) fn command(self) -> String {
        alloc::format!("time_left {} {}", self.bank.left_millis(), self.moves_left)
    }
}

fn millis(number: u32) -> Micros {
    Micros::from_millis(i64::from(number))
}
