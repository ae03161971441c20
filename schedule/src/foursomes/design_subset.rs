//! A subset of a design in which every pair meets once, so that no pair meets twice.
//!
//! If the number of bots has no such design, the planner uses a design for a few more bots, without
//! the tables of these extra bots. It then exchanges tables until the numbers of matches of two
//! bots differ by at most one. Memory holds all tables: O(n²).

use arbiter_games::Seed;

use super::construction::least_meetings;
use super::design::Design;
use super::{SEATS, Table};

/// The maximum number of exchanges.
const TRIES: usize = 1_000_000;

/// `count` tables for `bots` bots. `None` if the design has too few tables, or the search finds no
/// balanced subset.
pub(super) fn tables(bots: usize, count: usize, seed: Seed) -> Option<Vec<Table>> {
    let mut pool = pool(bots, seed);
    if pool.len() < count {
        return None;
    }
    let mut dice = seed.dice(1);
    dice.shuffle(&mut pool);
    let mut games = MatchCounts::of(&pool[..count], bots);
    for _ in 0..TRIES {
        if games.excess == 0 || count == pool.len() {
            break;
        }
        let removed = dice.index(count);
        let added = count + dice.index(pool.len() - count);
        if games.exchange(pool[removed], pool[added]) <= 0 {
            pool.swap(removed, added);
        } else {
            games.exchange(pool[added], pool[removed]);
        }
    }
    pool.truncate(count);
    (games.excess == 0).then_some(pool)
}

/// Tables at which no pair meets twice, and almost all pairs meet once.
fn pool(bots: usize, seed: Seed) -> Vec<Table> {
    let mut numbers = bots..bots + 12;
    let design_bots = numbers.find(|bots| least_meetings(*bots) == 1);
    let design_bots = design_bots.expect("every twelfth number has λ = 1");
    let mut design = Design::new(design_bots, 1, seed);
    let mut tables = Vec::new();
    let mut batch = Vec::new();
    while design.batch(&mut batch).is_some() {
        let has_no_extra_bot = |table: &Table| table.iter().all(|bot| usize::from(*bot) < bots);
        tables.extend(batch.drain(..).filter(has_no_extra_bot));
    }
    tables
}

/// The number of matches of each bot.
struct MatchCounts {
    counts: Vec<u32>,
    /// The difference between the sum of the squares of the counts and its lower bound.
    excess: i64,
}

impl MatchCounts {
    fn of(tables: &[Table], bots: usize) -> Self {
        let mut counts = vec![0; bots];
        for bot in tables.iter().flatten() {
            counts[usize::from(*bot)] += 1;
        }
        let sum: u64 = counts.iter().map(|count| u64::from(*count).pow(2)).sum();
        let seats = (SEATS * tables.len()) as u64;
        let bots = bots as u64;
        let count = seats / bots;
        let larger_counts = seats % bots;
        let min_sum = larger_counts * (count + 1).pow(2) + (bots - larger_counts) * count.pow(2);
        Self { counts, excess: i64::try_from(sum - min_sum).expect("a few bots have few matches") }
    }

    /// Replaces a table by another one. Returns the change of the sum of squares.
    fn exchange(&mut self, removed: Table, added: Table) -> i64 {
        let mut change = 0;
        for bot in removed {
            let count = &mut self.counts[usize::from(bot)];
            *count -= 1;
            change -= 2 * i64::from(*count) + 1;
        }
        for bot in added {
            let count = &mut self.counts[usize::from(bot)];
            change += 2 * i64::from(*count) + 1;
            *count += 1;
        }
        self.excess += change;
        change
    }
}
