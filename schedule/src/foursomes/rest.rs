//! Tables beyond whole designs: so few that pairs cannot all meet equally often by them.
//!
//! What is wanted is that every pair meets ⌊x⌋ or ⌈x⌉ times, if x is the average. Three ways are
//! known. Some tables of a larger design ([`subset`]) are right wherever they are enough, that is
//! up to an x of almost 1. A [`Cyclic`] plan is right for most other x, if there are bots enough.
//! Where it is not, it competes with a [`spread`] one, if there are few enough. Close below and
//! above whole x none may be right; then some pairs are off by one more.
//!
//! No pair is off by two. The last two ways are random searches; where x is close to a whole number,
//! up to one search in ten leaves such a pair. Its tables are dropped, and the next search begins.

use core::ops::RangeInclusive;

use arbiter_games::Seed;

use super::cyclic::Cyclic;
use super::design::Seating;
use super::{PAIRS, SEATS, Table, spread, subset};
use crate::Certificate;

/// The fewest bots who stand in a circle.
const CIRCLE: usize = 30;
/// The most bots whose meetings are counted pair by pair.
const FEW: usize = 200;
/// The most bots for whom all tables of a design are kept, to choose among.
const SEVERAL: usize = 1000;
/// How many searches are made at most until no pair is off by two: 100 failures of one in ten each.
const SEARCHES: u64 = 100;

/// Where the tables come from.
#[derive(Debug)]
pub(super) enum Rest {
    /// They are made in turns.
    Cyclic(Cyclic),
    /// They are all known, and come at once.
    Known(Vec<Table>),
}

impl Rest {
    /// `count` tables for so many bots.
    pub(super) fn new(bots: usize, count: usize, seed: Seed) -> Self {
        let chosen = || subset::tables(bots, count, seed.derive("subset"));
        if bots <= SEVERAL
            && let Some(tables) = chosen()
        {
            return Self::Known(tables);
        }
        let bounds = bounds(bots, count as u64);
        let mut searches = (0..SEARCHES).map(|number| Self::search(bots, count, seed, number));
        let first = searches.next().expect("there is a first search");
        if first.is_within(bots, &bounds) {
            return first;
        }
        searches.find(|tables| tables.is_within(bots, &bounds)).unwrap_or(first)
    }

    /// The tables that the search with this number finds.
    fn search(bots: usize, count: usize, seed: Seed, number: u64) -> Self {
        let cyclic = || Cyclic::new(bots, count, &mut seed.derive("cyclic").dice(number));
        if bots > FEW {
            return Self::Cyclic(cyclic());
        }
        let spread = || spread::tables(bots, count, &mut seed.derive("spread").dice(number));
        if bots < CIRCLE {
            return Self::Known(spread());
        }
        let turned = cyclic().collect();
        let off = count_meetings(bots, &turned).uneven_pairs();
        if off == 0 {
            return Self::Known(turned);
        }
        let spread = spread();
        let spread_off = count_meetings(bots, &spread).uneven_pairs();
        Self::Known(if off < spread_off { turned } else { spread })
    }

    /// Whether every pair meets so often.
    fn is_within(&self, bots: usize, bounds: &RangeInclusive<u32>) -> bool {
        match self {
            Self::Cyclic(cyclic) => cyclic.is_within(bounds),
            Self::Known(tables) => {
                let meetings = count_meetings(bots, tables).meetings;
                meetings.iter().all(|(times, _)| bounds.contains(times))
            }
        }
    }

    /// Adds some of the tables, O(n) of them unless bots are few; `None` once there are no more.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        match self {
            Self::Cyclic(cyclic) => cyclic.batch(tables),
            Self::Known(known) if known.is_empty() => None,
            Self::Known(known) => {
                tables.append(known);
                Some(Seating::Loose)
            }
        }
    }
}

fn count_meetings(bots: usize, tables: &[Table]) -> Certificate {
    Certificate::count(bots, SEATS, &[], tables).expect("tables are possible")
}

/// How often a pair meets at least and at most at so many tables: x times, rounded down and up, and
/// once less or more.
pub(super) fn bounds(bots: usize, count: u64) -> RangeInclusive<u32> {
    let bots = bots as u64;
    let (pairs, met) = (bots * (bots - 1) / 2, PAIRS * count);
    let small = |times| u32::try_from(times).expect("less often than in a design");
    small(met / pairs).saturating_sub(1)..=small(met.div_ceil(pairs)) + 1
}
