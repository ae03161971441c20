//! Tables beyond whole designs: too few for all pairs to meet equally often.
//!
//! The goal is that every pair meets ⌊x⌋ or ⌈x⌉ times, where x is the mean. There are three methods.
//! Some tables of a larger design ([`design_subset`]) reach the goal for x up to almost 1. A
//! [`Cyclic`] plan reaches it for most other x, with enough bots. Where it does not, and the bots are
//! few enough, the better of it and [`annealing`] is taken. Just below and above a whole x no method
//! may reach the goal; then some pairs are off by one more.
//!
//! No pair is off by two. The last two methods are random searches; where x is close to a whole
//! number, up to one search in ten leaves such a pair. Its tables are dropped, and the next search
//! begins.

use core::ops::RangeInclusive;

use arbiter_games::Seed;

use super::cyclic::Cyclic;
use super::design::Seating;
use super::{PAIRS, SEATS, Table, annealing, design_subset};
use crate::Certificate;

/// The minimum number of bots for a cyclic plan.
const MIN_CYCLIC: usize = 30;
/// The maximum number of bots for annealing, which counts meetings pair by pair.
const MAX_ANNEALED: usize = 200;
/// The maximum number of bots for a subset, which keeps all tables of a design.
const MAX_SUBSET: usize = 1000;
/// The maximum number of searches until no pair is off by two. Each fails at most one time in ten.
const MAX_SEARCHES: u64 = 100;

/// The source of the tables.
#[derive(Debug)]
pub(super) enum Remainder {
    /// Tables that are turned round a circle, made as they are needed.
    Cyclic(Cyclic),
    /// Tables that are all known, in one batch.
    Known(Vec<Table>),
}

impl Remainder {
    /// `count` tables for `bots` bots.
    pub(super) fn new(bots: usize, count: usize, seed: Seed) -> Self {
        let chosen = || design_subset::tables(bots, count, seed.derive("subset"));
        if bots <= MAX_SUBSET
            && let Some(tables) = chosen()
        {
            return Self::Known(tables);
        }
        let bounds = bounds(bots, count as u64);
        let mut searches = (0..MAX_SEARCHES).map(|number| Self::search(bots, count, seed, number));
        let first = searches.next().expect("there is a first search");
        if first.is_within(bots, &bounds) {
            return first;
        }
        searches.find(|tables| tables.is_within(bots, &bounds)).unwrap_or(first)
    }

    /// The result of the search with this number.
    fn search(bots: usize, count: usize, seed: Seed, number: u64) -> Self {
        let cyclic = || Cyclic::new(bots, count, &mut seed.derive("cyclic").dice(number));
        if bots > MAX_ANNEALED {
            return Self::Cyclic(cyclic());
        }
        let annealed = || annealing::tables(bots, count, &mut seed.derive("spread").dice(number));
        if bots < MIN_CYCLIC {
            return Self::Known(annealed());
        }
        let turned = cyclic().collect();
        let off = count_meetings(bots, &turned).uneven_pairs();
        if off == 0 {
            return Self::Known(turned);
        }
        let annealed = annealed();
        let annealed_off = count_meetings(bots, &annealed).uneven_pairs();
        Self::Known(if off < annealed_off { turned } else { annealed })
    }

    /// Whether the meetings of every pair are within bounds.
    fn is_within(&self, bots: usize, bounds: &RangeInclusive<u32>) -> bool {
        match self {
            Self::Cyclic(cyclic) => cyclic.is_within(bounds),
            Self::Known(tables) => {
                let meetings = count_meetings(bots, tables).meetings;
                meetings.iter().all(|(times, _)| bounds.contains(times))
            }
        }
    }

    /// Appends the next tables, O(n) of them unless bots are few; `None` at the end.
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

/// The bounds of a pair's meetings at `count` tables: the mean rounded down less one, and rounded up
/// plus one.
pub(super) fn bounds(bots: usize, count: u64) -> RangeInclusive<u32> {
    let bots = bots as u64;
    let pairs = bots * (bots - 1) / 2;
    let met = PAIRS * count;
    let small = |times| u32::try_from(times).expect("less often than in a design");
    small(met / pairs).saturating_sub(1)..=small(met.div_ceil(pairs)) + 1
}
