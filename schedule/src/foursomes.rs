//! Tables of four at which every pair of bots meets equally often.
//!
//! For 4 or more bots there is a smallest number λ (1, 2, 3 or 6) such that all pairs can meet
//! exactly λ times. [`Foursomes`] yields the tables of such a plan one by one in O(n) memory.
//! Multiples of λ are possible too. With any other number of matches, pairs meet x times on
//! average. A search then looks for a plan in which most pairs meet ⌊x⌋ or ⌈x⌉ times. A
//! [`Certificate`](super::Certificate) counts the exceptions.
//!
//! A `construction` builds a `design` from smaller designs, and finally from the tables of
//! `small_designs`. The blocks of a `transversal` design join groups of bots. Most batches of
//! tables give every bot each seat equally often. The planner collects all other tables and assigns
//! their seats at the end (`seat_balance`). Matches beyond whole designs are the `remainder`. If
//! bots join or leave between editions, or owners are kept apart, `incremental_planner` changes a
//! design.

mod annealing;
mod config;
mod construction;
mod cyclic;
mod design;
mod design_subset;
mod incremental_plan;
mod incremental_planner;
mod meeting_counts;
mod remainder;
mod same_owner;
mod seat_balance;
mod small_designs;
mod transversal;

use core::num::NonZeroU64;

use arbiter_games::Seed;

pub use self::config::{FoursomesConfig, FoursomesConfigError};
pub(crate) use self::construction::MIN_BOTS;
use self::design::{Design, Seating};
pub(crate) use self::incremental_plan::IncrementalPlan;
pub use self::incremental_plan::IncrementalTables;
pub(crate) use self::meeting_counts::MeetingCounts;
use self::remainder::Remainder;
pub use super::bot::MAX_COUNTED_BOTS;
use super::error::check_bots;
use super::{Bot, Claim, RosterHistory, ScheduleError};

/// The number of seats of a table.
pub const SEATS: usize = 4;
/// The number of pairs at a table.
const PAIRS: u64 = 6;
/// The maximum number of meetings of a pair.
pub const MAX_MEETINGS: u32 = 10_000;

/// The bots of a table, seat 1 first.
pub type Table = [Bot; SEATS];

/// λ: the smallest number of meetings that all pairs of `bots` bots can have.
///
/// # Errors
/// If there are fewer than 4 bots, or too many.
pub fn least_meetings(bots: usize) -> Result<u32, ScheduleError> {
    check(bots)?;
    Ok(construction::least_meetings(bots))
}

fn check(bots: usize) -> Result<(), ScheduleError> {
    check_bots(bots, MIN_BOTS, "tables of four")
}

/// The number of tables of a design.
fn tables_of(bots: usize, meetings: u32) -> u64 {
    let bots = bots as u64;
    u64::from(meetings) * (bots * (bots - 1) / 2) / PAIRS
}

/// The tables of a plan, one by one.
#[derive(Debug)]
pub struct Foursomes {
    bots: usize,
    /// The number of meetings of each pair in whole designs.
    meetings: u32,
    /// The number of tables beyond whole designs.
    remainder: u64,
    seed: Seed,
    source: Source,
    batch: Vec<Table>,
    next: usize,
    loose: Vec<Table>,
}

/// The source of batches, in the order of use.
#[derive(Debug)]
enum Source {
    Design(Box<Design>),
    Remainder(Remainder),
    /// Only the loose tables remain.
    Exhausted,
}

impl FoursomesConfig {
    /// A new plan for a number of bots. `seed` determines which bot has which number in the design.
    ///
    /// # Errors
    /// If there are fewer than 4 bots, or too many.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Foursomes, ScheduleError> {
        self.first_plan(&self.new_history(bots), seed)
    }

    /// The plan for the first bots of a history.
    ///
    /// # Errors
    /// If there are fewer than 4 bots, or too many.
    pub fn first_plan(
        self,
        history: &RosterHistory,
        seed: Seed,
    ) -> Result<Foursomes, ScheduleError> {
        let (meetings, remainder) = self.parts(history)?;
        Ok(Foursomes::new(history.base, meetings, remainder, seed))
    }

    /// The history of a new plan for these bots: each bot plays.
    pub(crate) fn new_history(self, bots: usize) -> RosterHistory {
        let fewest = NonZeroU64::new(bots.div_ceil(SEATS) as u64);
        let first_tables = match self {
            Self::Games(budget) => fewest.filter(|fewest| *fewest > budget),
            Self::Least | Self::Meetings(_) => None,
        };
        RosterHistory { first_tables, ..RosterHistory::new(bots) }
    }

    /// Whether each of the first bots of a history plays in their plan. In plans of former releases
    /// some did not.
    pub fn seats_all(self, history: &RosterHistory) -> bool {
        history.first_tables >= self.new_history(history.base).first_tables
    }

    /// For the first bots of a history, the number of meetings of each pair in whole designs, and
    /// the number of tables beyond them.
    pub(crate) fn parts(self, history: &RosterHistory) -> Result<(u32, u64), ScheduleError> {
        let bots = history.base;
        let least = least_meetings(bots)?;
        Ok(match self {
            Self::Least => (least, 0),
            Self::Meetings(meetings) => (rounded_meetings(bots, meetings.get()), 0),
            Self::Games(budget) => {
                let tables = planned_tables(history, budget);
                let design = tables_of(bots, least);
                let designs = u32::try_from(tables / design).expect("tables are limited");
                (designs * least, tables % design)
            }
        })
    }
}

/// The smallest possible number of meetings that is at least the requested one, which is at most
/// [`MAX_MEETINGS`].
pub(crate) fn rounded_meetings(bots: usize, requested: u32) -> u32 {
    requested.min(MAX_MEETINGS).next_multiple_of(construction::least_meetings(bots))
}

/// The number of tables for the first bots of a history, with this budget: so few that pairs meet
/// at most [`MAX_MEETINGS`] times, rounded up.
pub(crate) fn planned_tables(history: &RosterHistory, budget: NonZeroU64) -> u64 {
    let bots = history.base;
    let tables = history.first_tables.unwrap_or(budget).get();
    tables.min(tables_of(bots, rounded_meetings(bots, MAX_MEETINGS)))
}

impl Foursomes {
    pub(crate) fn new(bots: usize, meetings: u32, remainder: u64, seed: Seed) -> Self {
        let source = Source::Design(Box::new(Design::new(bots, meetings, seed.derive("design"))));
        Self {
            bots,
            meetings,
            remainder,
            seed,
            source,
            batch: Vec::new(),
            next: 0,
            loose: Vec::new(),
        }
    }

    /// The total number of tables.
    pub fn matches(&self) -> u64 {
        tables_of(self.bots, self.meetings) + self.remainder
    }

    /// The number of meetings of each pair; `None` if pairs differ.
    pub fn meetings(&self) -> Option<u32> {
        (self.remainder == 0).then_some(self.meetings)
    }

    /// The claim of the plan. If pairs cannot all meet equally often, the meetings of each pair
    /// differ from ⌊x⌋ or ⌈x⌉ by at most one.
    pub fn claim(&self) -> Claim {
        let (min, max) = match self.remainder {
            0 => (0, 0),
            count => remainder::bounds(self.bots, count).into_inner(),
        };
        Claim {
            matches: self.matches(),
            opponents: None,
            meetings: self.meetings + min..=self.meetings + max,
            same_owner_meetings: None,
            match_spread: Some(u32::from(self.remainder > 0)),
            seat_spread: Some(1),
            side_spread: None,
        }
    }

    /// The source that follows the present one.
    fn next_source(&self) -> Source {
        match self.source {
            Source::Design(_) if self.remainder > 0 => {
                let count = usize::try_from(self.remainder).expect("less than a design");
                Source::Remainder(Remainder::new(self.bots, count, self.seed.derive("rest")))
            }
            _ => Source::Exhausted,
        }
    }

    /// Makes the next batch: even tables first, all loose tables at the end. `None` if there are no
    /// more tables.
    fn refill(&mut self) -> Option<()> {
        self.batch.clear();
        self.next = 0;
        loop {
            let seating = match &mut self.source {
                Source::Design(design) => design.batch(&mut self.batch),
                Source::Remainder(remainder) => remainder.batch(&mut self.batch),
                Source::Exhausted if self.loose.is_empty() => return None,
                Source::Exhausted => {
                    seat_balance::balance(&mut self.loose, self.bots);
                    self.batch.append(&mut self.loose);
                    return Some(());
                }
            };
            match seating {
                Some(Seating::Even) => return Some(()),
                Some(Seating::Loose) => self.loose.append(&mut self.batch),
                None => self.source = self.next_source(),
            }
        }
    }
}

impl Iterator for Foursomes {
    type Item = Table;

    fn next(&mut self) -> Option<Table> {
        while self.next == self.batch.len() {
            self.refill()?;
        }
        self.next += 1;
        Some(self.batch[self.next - 1])
    }
}
