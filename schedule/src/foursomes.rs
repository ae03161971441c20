//! Tables of four at which every pair of bots meets equally often.
//!
//! For every number of bots from 4 on there is a least number λ of meetings that all pairs can have
//! (1, 2, 3 or 6), and a plan that has it; [`Foursomes`] gives its tables one by one and keeps O(n)
//! of them. λ may be had several times over. For any other number of matches, in which pairs meet
//! x times on average, they meet ⌊x⌋ or ⌈x⌉ times as nearly as is found; how nearly, a
//! [`Certificate`](super::Certificate) says.
//!
//! How it works: a `design` is made of smaller ones by a `rule`, down to written `rows`;
//! groups of bots are joined by the blocks of a `ring`. Most tables come in lots that give every
//! bot every seat equally often; the others are put by, and seated at the end (`seats`). Matches
//! beyond whole designs are the `rest`'s. Where bots come and go between editions, or owners are
//! kept apart, a plan `grow`s from a design.

mod cyclic;
mod design;
mod extent;
mod grow;
mod grown;
mod kin;
mod meetings;
mod rest;
mod ring;
mod rows;
mod rule;
mod seats;
mod spread;
mod subset;

use arbiter_games::Seed;

use self::design::{Design, Seating};
pub use self::extent::{Extent, ExtentError};
pub(crate) use self::grown::Grown;
pub use self::grown::GrownTables;
use self::rest::Rest;
pub use super::bot::MOST_KNOWN;
use super::error::check_bots;
use super::{Bot, Claim, ScheduleError};

/// Seats at a table.
pub const SEATS: usize = 4;
/// Pairs at a table.
const PAIRS: u64 = 6;
/// The most times a pair may meet.
pub const MOST_MEETINGS: u32 = 10_000;

/// Who sits at a table, seat 1 first.
pub type Table = [Bot; SEATS];

/// How often every pair meets at least, if all `bots` meet equally often.
///
/// # Errors
/// If there are fewer than 4 bots, or more than can be planned.
pub fn least_meetings(bots: usize) -> Result<u32, ScheduleError> {
    check(bots)?;
    Ok(rule::least_meetings(bots))
}

fn check(bots: usize) -> Result<(), ScheduleError> {
    check_bots(bots, rule::FEWEST, "foursomes")
}

/// How many tables a design has.
fn tables_of(bots: usize, meetings: u32) -> u64 {
    let bots = bots as u64;
    u64::from(meetings) * (bots * (bots - 1) / 2) / PAIRS
}

/// The tables of a plan, one by one.
#[derive(Debug)]
pub struct Foursomes {
    bots: usize,
    /// How often each pair meets in whole designs.
    meetings: u32,
    /// How many tables there are beyond them.
    rest: u64,
    seed: Seed,
    source: Source,
    batch: Vec<Table>,
    next: usize,
    loose: Vec<Table>,
}

/// Where batches come from; one source after the other.
#[derive(Debug)]
enum Source {
    Design(Box<Design>),
    Rest(Rest),
    /// Nothing is left but the loose tables.
    Dry,
}

impl Extent {
    /// The plan for so many bots; `seed` decides who is who in it.
    ///
    /// # Errors
    /// If there are fewer than 4 bots, or too many, or if so many meetings of every pair are
    /// impossible for so many bots, or if there are more than 10 000 of them.
    pub fn plan(self, bots: usize, seed: Seed) -> Result<Foursomes, ScheduleError> {
        let (meetings, rest) = self.parts(bots)?;
        Ok(Foursomes::new(bots, meetings, rest, seed))
    }

    /// How often each pair meets in whole designs, and how many tables there are beyond them.
    fn parts(self, bots: usize) -> Result<(u32, u64), ScheduleError> {
        let least = least_meetings(bots)?;
        let (meetings, rest) = match self {
            Self::Least => (least, 0),
            Self::Meetings(meetings) if !meetings.get().is_multiple_of(least) => {
                return Err(ScheduleError::Meetings { bots, least, meetings: meetings.get() });
            }
            Self::Meetings(meetings) => (meetings.get(), 0),
            Self::Games(games) => {
                let design = tables_of(bots, least);
                let designs = u32::try_from(games.get() / design).unwrap_or(u32::MAX);
                (designs.saturating_mul(least), games.get() % design)
            }
        };
        if meetings > MOST_MEETINGS {
            return Err(ScheduleError::TooMuch { most: MOST_MEETINGS });
        }
        Ok((meetings, rest))
    }
}

impl Foursomes {
    fn new(bots: usize, meetings: u32, rest: u64, seed: Seed) -> Self {
        let (batch, loose) = (Vec::new(), Vec::new());
        let source = Source::Design(Box::new(Design::new(bots, meetings, seed.derive("design"))));
        Self { bots, meetings, rest, seed, source, batch, next: 0, loose }
    }

    /// How many tables there are in all.
    pub fn matches(&self) -> u64 {
        tables_of(self.bots, self.meetings) + self.rest
    }

    /// How often each pair meets, where all meet equally often.
    pub fn meetings(&self) -> Option<u32> {
        (self.rest == 0).then_some(self.meetings)
    }

    /// What is promised. Where pairs cannot all meet equally often, none is more than one meeting
    /// off from ⌊x⌋ or ⌈x⌉.
    pub fn claim(&self) -> Claim {
        let (least, most) = match self.rest {
            0 => (0, 0),
            rest => rest::bounds(self.bots, rest).into_inner(),
        };
        Claim {
            matches: self.matches(),
            meetings: self.meetings + least..=self.meetings + most,
            kin_meetings: None,
            match_spread: Some(u32::from(self.rest > 0)),
            seat_spread: Some(1),
            side_spread: None,
        }
    }

    /// What comes after a source that gives no more.
    fn after(&self) -> Source {
        match self.source {
            Source::Design(_) if self.rest > 0 => {
                let count = usize::try_from(self.rest).expect("less than a design");
                Source::Rest(Rest::new(self.bots, count, self.seed.derive("rest")))
            }
            _ => Source::Dry,
        }
    }

    /// Makes the next batch, unless there is none: even tables as they come, loose ones at last.
    fn refill(&mut self) -> Option<()> {
        self.batch.clear();
        self.next = 0;
        loop {
            let seating = match &mut self.source {
                Source::Design(design) => design.batch(&mut self.batch),
                Source::Rest(rest) => rest.batch(&mut self.batch),
                Source::Dry if self.loose.is_empty() => return None,
                Source::Dry => {
                    seats::balance(&mut self.loose, self.bots);
                    self.batch.append(&mut self.loose);
                    return Some(());
                }
            };
            match seating {
                Some(Seating::Even) => return Some(()),
                Some(Seating::Loose) => self.loose.append(&mut self.batch),
                None => self.source = self.after(),
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
