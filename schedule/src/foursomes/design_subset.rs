//! A subset of a design in which every pair meets once, so that no pair meets twice.
//!
//! If there is no such design for the number of bots, one for a few more bots is taken, without the
//! tables of these extra bots. Exchanges of tables then balance the subset until no bot has two
//! matches more than another. All tables are kept: O(n²) memory.

use arbiter_games::Seed;

use super::construction::least_meetings;
use super::design::Design;
use super::{SEATS, Table};

/// The maximum number of exchanges.
const TRIES: usize = 1_000_000;

/// `count` tables for `bots` bots; `None` if the design has too few or no balanced subset is found.
pub(super) fn tables(bots: usize, count: usize, seed: Seed) -> Option<Vec<Table>> {
    let mut pool = pool(bots, seed);
    if pool.len() < count {
        return None;
    }
    let mut dice = seed.dice(1);
    dice.shuffle(&mut pool);
    let mut games = Games::of(&pool[..count], bots);
    for _ in 0..TRIES {
        if games.excess == 0 || count == pool.len() {
            break;
        }
        let out = dice.index(count);
        let into = count + dice.index(pool.len() - count);
        if games.exchange(pool[out], pool[into]) <= 0 {
            pool.swap(out, into);
        } else {
            games.exchange(pool[into], pool[out]);
        }
    }
    pool.truncate(count);
    (games.excess == 0).then_some(pool)
}

/// Tables at which no pair meets twice, and almost all meet once.
fn pool(bots: usize, seed: Seed) -> Vec<Table> {
    let mut numbers = bots..bots + 12;
    let seated = numbers.find(|bots| least_meetings(*bots) == 1).expect("every twelfth is one");
    let mut design = Design::new(seated, 1, seed);
    let mut all = Vec::new();
    let mut batch = Vec::new();
    while design.batch(&mut batch).is_some() {
        let there = |table: &Table| table.iter().all(|bot| usize::from(*bot) < bots);
        all.extend(batch.drain(..).filter(there));
    }
    all
}

/// The number of matches of each bot.
struct Games {
    of: Vec<u32>,
    /// The difference between the sum of their squares and its lower bound.
    excess: i64,
}

impl Games {
    fn of(tables: &[Table], bots: usize) -> Self {
        let mut of = vec![0; bots];
        for bot in tables.iter().flatten() {
            of[usize::from(*bot)] += 1;
        }
        let sum: u64 = of.iter().map(|games| u64::from(*games).pow(2)).sum();
        let seats = (SEATS * tables.len()) as u64;
        let bots = bots as u64;
        let each = seats / bots;
        let more = seats % bots;
        let least = more * (each + 1).pow(2) + (bots - more) * each.pow(2);
        Self { of, excess: i64::try_from(sum - least).expect("a few bots have few matches") }
    }

    /// Replaces a table by another, and returns the change of the sum of squares.
    fn exchange(&mut self, out: Table, into: Table) -> i64 {
        let mut change = 0;
        for bot in out {
            let games = &mut self.of[usize::from(bot)];
            *games -= 1;
            change -= 2 * i64::from(*games) + 1;
        }
        for bot in into {
            let games = &mut self.of[usize::from(bot)];
            change += 2 * i64::from(*games) + 1;
            *games += 1;
        }
        self.excess += change;
        change
    }
}
