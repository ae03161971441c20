//! Who has met whom how often, and what one meeting more is worth.
//!
//! MeetingCounts cost the squares of their numbers, so that of all ways to have so many of them the
//! evenest is the cheapest. Prices are added where they are asked for: a pair that meets less often
//! than it must is dear, one that meets more often than it should is dearer, and a meeting of two
//! bots of one owner is dearest.

use super::{SEATS, Table, same_owner};
use crate::{Bot, Owner};

/// What it costs that a pair meets once less often than it must: more than any squares.
const SHORT: i64 = 1 << 24;
/// What it costs that a pair meets once more often than it should.
const CROWDED: i64 = 4 * SHORT;
/// What it costs that a pair falls short once nobody does.
const SHORT_AGAIN: i64 = 1 << 30;
/// What a meeting of two bots of one owner costs.
const APART: i64 = 1 << 36;

/// How often each pair meets: a number for each, O(n²).
#[derive(Debug)]
pub(super) struct MeetingCounts {
    met: Vec<u16>,
    /// How often everybody is to meet at least.
    floor: u16,
    /// How often anybody should meet at most.
    ceiling: u16,
    /// What it costs to fall short.
    short: i64,
    /// Whose the bots are; empty if that makes no difference.
    owners: Vec<Option<Owner>>,
}

/// The pairs of a table.
pub(super) const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

impl MeetingCounts {
    /// Nobody of so many bots has met, nobody must, and everybody may.
    pub(super) fn new(bots: usize) -> Self {
        let met = vec![0; bots * bots.saturating_sub(1) / 2];
        Self { met, floor: 0, ceiling: u16::MAX, short: SHORT, owners: Vec::new() }
    }

    /// The same among bots of these owners, if none should meet another of the same owner.
    pub(super) fn apart(bots: usize, owners: Vec<Option<Owner>>) -> Self {
        Self { owners, ..Self::new(bots) }
    }

    /// One more than so many bots, who has met nobody.
    pub(super) fn enter(&mut self, bots: usize) {
        self.met.resize((bots + 1) * bots / 2, 0);
    }

    /// Forgets all meetings.
    pub(super) fn clear(&mut self) {
        self.met.fill(0);
    }

    /// How often everybody is to meet at least, and should meet at most.
    pub(super) fn bound(&mut self, floor: u16, ceiling: u16) {
        (self.floor, self.ceiling, self.short) = (floor, ceiling, SHORT);
    }

    /// From now on nobody is to fall short any more, whatever else it costs.
    pub(super) fn insist(&mut self) {
        self.short = SHORT_AGAIN;
    }

    fn index(one: Bot, other: Bot) -> usize {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let (low, high) = (usize::from(low), usize::from(high));
        high * (high - 1) / 2 + low
    }

    /// How often two bots meet.
    pub(super) fn of(&self, one: Bot, other: Bot) -> u16 {
        self.met[Self::index(one, other)]
    }

    /// Whether two bots should be kept apart.
    pub(super) fn have_same_owner(&self, one: Bot, other: Bot) -> bool {
        same_owner::have_same_owner(&self.owners, one, other)
    }

    /// How often two bots still have to meet.
    pub(super) fn missing(&self, one: Bot, other: Bot) -> u16 {
        if self.have_same_owner(one, other) {
            0
        } else {
            self.floor.saturating_sub(self.of(one, other))
        }
    }

    /// What it costs that a pair that has met so often meets once more.
    fn step(&self, met: u16) -> i64 {
        let more = match met {
            _ if met < self.floor => -self.short,
            _ if met >= self.ceiling => CROWDED,
            _ => 0,
        };
        2 * i64::from(met) + 1 + more
    }

    /// What it costs that two bots meet once more.
    pub(super) fn price(&self, one: Bot, other: Bot) -> i64 {
        let met = self.of(one, other);
        if self.have_same_owner(one, other) {
            2 * i64::from(met) + 1 + APART
        } else {
            self.step(met)
        }
    }

    /// Lets two bots meet; what that costs.
    fn raise(&mut self, one: Bot, other: Bot) -> i64 {
        let price = self.price(one, other);
        self.met[Self::index(one, other)] += 1;
        price
    }

    /// Takes a meeting back; what that costs, mostly less than nothing.
    fn lower(&mut self, one: Bot, other: Bot) -> i64 {
        self.met[Self::index(one, other)] -= 1;
        -self.price(one, other)
    }

    /// Lets `bot` meet the others; what that costs.
    pub(super) fn join(&mut self, bot: Bot, others: &[Bot]) -> i64 {
        others.iter().map(|other| self.raise(bot, *other)).sum()
    }

    /// Takes back that `bot` met the others; what that costs.
    pub(super) fn part(&mut self, bot: Bot, others: [Bot; SEATS - 1]) -> i64 {
        others.into_iter().map(|other| self.lower(bot, other)).sum()
    }

    /// Lets all of a table meet.
    pub(super) fn seat(&mut self, table: Table) {
        for (one, other) in PAIRS {
            self.raise(table[one], table[other]);
        }
    }

    /// By how much the meetings at `tables` cost more than they would if they were spread as
    /// evenly as numbers allow, after all others. Those who are first in each of `tables` meet the
    /// same whatever happens if `fixed` is 1.
    pub(super) fn excess(&mut self, tables: &[Table], fixed: usize) -> i64 {
        let inner = || PAIRS.into_iter().filter(|(one, _)| *one >= fixed);
        let mut cost = 0;
        for table in tables {
            cost -= inner().map(|(one, other)| self.lower(table[one], table[other])).sum::<i64>();
        }
        let host = (fixed > 0).then(|| tables[0][0]);
        let least = self.least((inner().count() * tables.len()) as u64, host);
        for table in tables {
            for (one, other) in inner() {
                self.raise(table[one], table[other]);
            }
        }
        cost - least
    }

    /// The least that so many meetings more can cost, of anybody but `host`.
    fn least(&self, mut more: u64, host: Option<Bot>) -> i64 {
        let mut levels = std::collections::BTreeMap::new();
        let bots = 0..=Bot::MAX;
        let mut met = self.met.iter();
        for high in bots.skip(1) {
            if met.len() == 0 {
                break;
            }
            for (low, met) in (0..high).zip(&mut met) {
                if Some(high) != host && Some(low) != host && !self.have_same_owner(high, low) {
                    *levels.entry(*met).or_insert(0_u64) += 1;
                }
            }
        }
        let mut cost = 0;
        while more > 0
            && let Some((met, pairs)) = levels.pop_first()
        {
            let raised = pairs.min(more);
            cost += self.step(met) * raised.cast_signed();
            *levels.entry(met + 1).or_insert(0) += raised;
            more -= raised;
            if raised < pairs {
                break;
            }
        }
        cost
    }
}
