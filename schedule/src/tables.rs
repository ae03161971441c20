//! Tables of any number of seats from 2 to 16.
//!
//! In each leg every bot has each seat exactly once, so with l legs at tables of s seats every bot
//! plays exactly l · s matches. How often pairs meet differs as little as a search finds.
//!
//! The tables of a leg are one base block, developed over all bots ([`base_blocks`]): whatever the
//! block is, seats are exact. Only the base blocks are in memory, one table for each leg.
//!
//! If bots join or leave between editions, they exchange places with bots at a few tables
//! ([`exchanges`]). Then the other tables stay, and the numbers of matches and seats stay exact.

mod base_blocks;
mod exchanges;

use std::collections::BTreeMap;
use std::sync::Arc;

use arbiter_games::Seed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::base_blocks::BaseBlocks;
use super::error::check_bots;
use super::{Bot, Claim, Repetitions, ScheduleError};

/// The maximum number of seats of a table.
const MAX_SEATS: usize = arbiter_games::MAX_SEATS as usize;

/// The bots of a table, seat 1 first. Seats that a table does not have hold bot 0.
pub(crate) type SeatedBots = [Bot; MAX_SEATS];

/// The number of seats of a table, from 2 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "usize")]
pub struct TableSeats(usize);

/// The error for a number of seats that a table cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "a table cannot have {0} {noun}; choose 2 to {MAX_SEATS}, or kind solo for bots that \
     play alone",
    noun = if .0 == "1" { "seat" } else { "seats" }
)]
pub struct TableSeatsError(String);

impl TableSeats {
    /// The number.
    pub fn get(self) -> usize {
        self.0
    }
}

impl TryFrom<i64> for TableSeats {
    type Error = TableSeatsError;

    fn try_from(number: i64) -> Result<Self, TableSeatsError> {
        let seats = usize::try_from(number).ok().filter(|seats| (2..=MAX_SEATS).contains(seats));
        seats.map(Self).ok_or_else(|| TableSeatsError(number.to_string()))
    }
}

impl From<TableSeats> for usize {
    fn from(seats: TableSeats) -> Self {
        seats.0
    }
}

impl core::str::FromStr for TableSeats {
    type Err = TableSeatsError;

    fn from_str(text: &str) -> Result<Self, TableSeatsError> {
        let number: i64 = text.parse().map_err(|_| TableSeatsError(text.to_owned()))?;
        number.try_into()
    }
}

/// The options of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// The number of seats of each table.
    pub seats: TableSeats,
    /// How many times each bot has each seat.
    #[serde(default = "default_legs")]
    pub legs: Repetitions,
}

fn default_legs() -> Repetitions {
    Repetitions::TEN
}

impl Tables {
    /// Tables of this many seats, with the default number of legs.
    pub fn of(seats: TableSeats) -> Self {
        Self { seats, legs: default_legs() }
    }

    /// The plan for a number of bots. `seed` determines all random choices.
    ///
    /// # Errors
    /// If there are fewer bots than seats, or too many.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<TablePlan, ScheduleError> {
        check_bots(bots, self.seats.get(), "one table")?;
        Ok(TablePlan::new(self, bots, seed))
    }
}

/// A plan of tables.
#[derive(Debug)]
pub struct TablePlan {
    seats: usize,
    /// The number of bots that take part.
    pub(crate) bots: usize,
    /// The number of bots of the cyclic design.
    design_bots: usize,
    legs: usize,
    blocks: BaseBlocks,
    /// The bot with each number of the design. A bot that left has no table any more.
    holders: Vec<Bot>,
    /// The tables that differ from the design, by index; `None` for those that were removed.
    /// Indices beyond the design are added tables.
    changed: BTreeMap<u64, Option<SeatedBots>>,
    /// The number of tables, including those that were removed.
    indices: u64,
    /// The maximum number of tables that the last change replaced or added: a table that it
    /// replaced twice counts twice.
    pub(crate) new_tables: u64,
    claim: Claim,
}

impl TablePlan {
    /// The tables of a cyclic design.
    fn new(tables: Tables, bots: usize, seed: Seed) -> Self {
        let seats = tables.seats.get();
        let legs = tables.legs.get() as usize;
        let blocks = BaseBlocks::find(bots, seats, legs, seed.derive("blocks"));
        let mut holders: Vec<Bot> = (0..=Bot::MAX).take(bots).collect();
        seed.derive("numbers").dice(0).shuffle(&mut holders);
        let matches = (legs * bots) as u64;
        let claim = Claim {
            matches,
            opponents: None,
            meetings: blocks.meetings(),
            same_owner_meetings: None,
            match_spread: Some(0),
            seat_spread: Some(0),
            side_spread: None,
        };
        Self {
            seats,
            bots,
            design_bots: bots,
            legs,
            blocks,
            holders,
            changed: BTreeMap::new(),
            indices: matches,
            new_tables: 0,
            claim,
        }
    }

    /// The table with this index; `None` if it was removed.
    fn table(&self, index: u64) -> Option<SeatedBots> {
        if !self.changed.is_empty()
            && let Some(table) = self.changed.get(&index)
        {
            return *table;
        }
        let index = usize::try_from(index).expect("a design has at most 2³² tables");
        let shift = index % self.design_bots;
        let mut table = [0; MAX_SEATS];
        for (bot, residue) in table.iter_mut().zip(self.blocks.of_leg(index / self.design_bots)) {
            *bot = self.holders[(usize::from(*residue) + shift) % self.design_bots];
        }
        Some(table)
    }

    /// All tables.
    pub(crate) fn stream(self: &Arc<Self>) -> TableStream {
        TableStream { plan: Arc::clone(self), next: 0 }
    }
}

/// The tables of a plan, one by one.
#[derive(Debug)]
pub struct TableStream {
    plan: Arc<TablePlan>,
    next: u64,
}

impl TableStream {
    /// The total number of tables.
    pub fn matches(&self) -> u64 {
        self.plan.claim.matches
    }

    /// The number of seats of a table.
    pub fn seats(&self) -> usize {
        self.plan.seats
    }

    /// The claim of the plan.
    pub fn claim(&self) -> Claim {
        self.plan.claim.clone()
    }
}

impl Iterator for TableStream {
    type Item = SeatedBots;

    fn next(&mut self) -> Option<SeatedBots> {
        while self.next < self.plan.indices {
            self.next += 1;
            if let Some(table) = self.plan.table(self.next - 1) {
                return Some(table);
            }
        }
        None
    }
}
