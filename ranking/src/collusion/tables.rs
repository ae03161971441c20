//! The examined tables, in compact form.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::Entrant;
use thiserror::Error;

use crate::ScoredMatch;

/// The maximum number of tables. A table of four takes about 100 bytes, so all tables stay below
/// 200 MB.
pub const MAX_TABLES: usize = 1_500_000;

/// The minimum number of seats for collusion: two bots and a third one.
const MIN_SEATS: usize = 3;

/// The error for more than [`MAX_TABLES`] tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("there are too many tables: at most {MAX_TABLES} can be searched")]
pub struct TooManyTables;

/// Tables with three or more seats, and the first component of each score.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The index of each entrant of a table, in the order of first tables.
    index: BTreeMap<Entrant, u32>,
    entrants: Vec<Entrant>,
    /// The bots of all seats, table by table.
    seats: Vec<u32>,
    /// The scores of all seats, in the same order.
    scores: Vec<f64>,
    rows: Vec<Table>,
    /// For a stratum and a number of seats: the index of the first seat among all kinds of seats.
    kinds: BTreeMap<(u16, usize), u32>,
    /// The number of kinds of seats.
    kinds_of_seats: u32,
    strata: u16,
}

/// A table.
#[derive(Clone, Copy, Debug)]
struct Table {
    /// The end of its seats in the list of all seats.
    end: u32,
    /// The kind of its first seat. The kinds of its other seats are the next numbers.
    kind: u32,
    stratum: u16,
}

/// A view of a table.
#[derive(Clone, Debug)]
pub(super) struct TableView<'a> {
    /// The bots, seat 1 first.
    pub(super) bots: &'a [u32],
    /// The indices of their scores and residuals.
    pub(super) places: Range<usize>,
    /// The kind of the first seat.
    pub(super) kind: usize,
    /// The stratum. Draws exchange tables only within a stratum.
    pub(super) stratum: u16,
}

impl Tables {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a table. Tables under different conditions, such as the rounds of an episode, have
    /// different strata, numbered from 0. Tables of one or two seats are ignored.
    pub fn add(&mut self, result: &ScoredMatch<'_>, stratum: u16) -> Result<(), TooManyTables> {
        let seats = result.seats.len();
        if seats < MIN_SEATS {
            return Ok(());
        }
        if self.rows.len() >= MAX_TABLES {
            return Err(TooManyTables);
        }
        let kind = *self.kinds.entry((stratum, seats)).or_insert_with(|| {
            let first = self.kinds_of_seats;
            self.kinds_of_seats += u32::try_from(seats).unwrap_or(u32::MAX);
            first
        });
        self.strata = self.strata.max(stratum + 1);
        for (seat, (entrant, score)) in result.entrant_scores().enumerate() {
            let bot = *self.index.entry(entrant).or_insert_with(|| {
                self.entrants.push(entrant);
                u32::try_from(self.entrants.len() - 1).unwrap_or(u32::MAX)
            });
            let carried = result.carried.get(seat).copied().map_or(0, i128::from);
            let first = score.first().copied().map_or(0, i128::from);
            self.seats.push(bot);
            self.scores.push(to_float(first - carried));
        }
        let end = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        self.rows.push(Table { end, kind, stratum });
        Ok(())
    }

    /// The number of tables.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no tables.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The number of bots at all tables.
    pub(super) fn bots(&self) -> u32 {
        u32::try_from(self.entrants.len()).unwrap_or(u32::MAX)
    }

    /// The entrant with the number `bot`.
    pub(super) fn entrant(&self, bot: u32) -> Entrant {
        self.entrants[bot as usize]
    }

    /// The number of strata.
    pub(super) fn strata(&self) -> u16 {
        self.strata
    }

    /// The number of kinds of seats.
    pub(super) fn kinds_of_seats(&self) -> usize {
        self.kinds_of_seats as usize
    }

    /// The scores of the bots, table by table.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The table with this number, counted from 0.
    pub(super) fn table(&self, number: usize) -> TableView<'_> {
        let Table { end, kind, stratum } = self.rows[number];
        let start = number.checked_sub(1).map_or(0, |previous| self.rows[previous].end);
        let places = start as usize..end as usize;
        TableView { bots: &self.seats[places.clone()], places, kind: kind as usize, stratum }
    }

    /// All tables.
    pub(super) fn iter(&self) -> impl Iterator<Item = TableView<'_>> {
        (0..self.len()).map(|number| self.table(number))
    }
}

#[expect(clippy::cast_precision_loss, reason = "scores are far smaller than 2^53")]
fn to_float(score: i128) -> f64 {
    score as f64
}
