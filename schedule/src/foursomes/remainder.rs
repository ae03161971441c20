//! Tables beyond whole designs: too few for all pairs to meet equally often.
//!
//! The goal is that every pair meets ⌊x⌋ or ⌈x⌉ times, where x is the mean. There are three
//! methods. A subset of a design ([`design_subset`]) reaches the goal for x up to almost 1. With
//! enough bots, a [`Cyclic`] plan reaches it for most other x. Otherwise, if there are few bots,
//! the planner takes the better of the cyclic plan and a plan by [`annealing`]. If x is close to a
//! whole number, all methods may miss the goal. Then some pairs have one meeting more or less.
//!
//! No pair has two meetings more or less. The last two methods are random searches. If x is close
//! to a whole number, up to one search in ten leaves such a pair. The planner then rejects the
//! result and searches again.

use core::ops::RangeInclusive;

use arbiter_games::Seed;

use super::cyclic::Cyclic;
use super::design::Seating;
use super::{PAIRS, SEATS, Table, annealing, design_subset};
use crate::Certificate;

/// The minimum number of bots for a cyclic plan.
const MIN_CYCLIC: usize = 30;
/// The maximum number of bots for annealing, which has a counter for each pair.
const MAX_ANNEALED: usize = 200;
/// The maximum number of bots for a subset, which holds all tables of a design in memory.
const MAX_SUBSET: usize = 1000;
/// The maximum number of searches. Each one fails with a probability of at most 0.1.
const MAX_SEARCHES: u64 = 100;

/// The source of the tables.
#[derive(Debug)]
pub(super) enum Remainder {
    /// Tables of a cyclic plan, made when they are needed.
    Cyclic(Cyclic),
    /// Finished tables, in one batch.
    Finished(Vec<Table>),
}

impl Remainder {
    /// `count` tables for `bots` bots.
    pub(super) fn new(bots: usize, count: usize, seed: Seed) -> Self {
        let subset = || design_subset::tables(bots, count, seed.derive("subset"));
        if bots <= MAX_SUBSET
            && let Some(tables) = subset()
        {
            return Self::Finished(tables);
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
            return Self::Finished(annealed());
        }
        let rotated = cyclic().collect();
        let uneven_pairs = count_meetings(bots, &rotated).uneven_pairs();
        if uneven_pairs == 0 {
            return Self::Finished(rotated);
        }
        let annealed = annealed();
        let annealed_uneven_pairs = count_meetings(bots, &annealed).uneven_pairs();
        Self::Finished(if uneven_pairs < annealed_uneven_pairs { rotated } else { annealed })
    }

    /// Whether the meetings of every pair are within bounds.
    fn is_within(&self, bots: usize, bounds: &RangeInclusive<u32>) -> bool {
        match self {
            Self::Cyclic(cyclic) => cyclic.is_within(bounds),
            Self::Finished(tables) => {
                let meetings = count_meetings(bots, tables).meetings;
                meetings.iter().all(|(times, _)| bounds.contains(times))
            }
        }
    }

    /// Appends the next tables: O(n) of them for a cyclic plan. `None` at the end.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        match self {
            Self::Cyclic(cyclic) => cyclic.batch(tables),
            Self::Finished(remaining) if remaining.is_empty() => None,
            Self::Finished(remaining) => {
                tables.append(remaining);
                Some(Seating::Loose)
            }
        }
    }
}

fn count_meetings(bots: usize, tables: &[Table]) -> Certificate {
    Certificate::count(bots, SEATS, &[], tables).expect("the planner makes possible tables")
}

/// The bounds of a pair's meetings at `count` tables: the mean rounded down minus one, and the mean
/// rounded up plus one.
pub(super) fn bounds(bots: usize, count: u64) -> RangeInclusive<u32> {
    let bots = bots as u64;
    let pairs = bots * (bots - 1) / 2;
    let meetings = PAIRS * count;
    let small = |number| u32::try_from(number).expect("fewer meetings than in a design");
    small(meetings / pairs).saturating_sub(1)..=small(meetings.div_ceil(pairs)) + 1
}
