//! How often each pair has met, and the cost of one more meeting.
//!
//! The cost of a pair is the square of its number of meetings, so the most even distribution is the
//! cheapest. Penalties are added where limits are set: a high one for a pair below the minimum, a
//! higher one for a pair above the maximum, and the highest for a meeting of two bots of one owner.

use super::{SEATS, Table, same_owner};
use crate::{Bot, Owner};

/// The penalty for one meeting below the minimum: more than any squares.
const BELOW_MIN: i64 = 1 << 24;
/// The penalty for one meeting above the maximum.
const ABOVE_MAX: i64 = 4 * BELOW_MIN;
/// The penalty for one meeting below the minimum after all pairs have reached it.
const BELOW_MIN_AGAIN: i64 = 1 << 30;
/// The penalty for a meeting of two bots of one owner.
const SAME_OWNER: i64 = 1 << 36;

/// How often each pair meets: one counter for each, O(n²).
#[derive(Debug)]
pub(super) struct MeetingCounts {
    met: Vec<u16>,
    /// The minimum number of meetings of a pair.
    floor: u16,
    /// The maximum number of meetings that a pair should have.
    ceiling: u16,
    /// The present penalty for one meeting below the minimum.
    short: i64,
    /// The owners of the bots; empty if owners do not matter.
    owners: Vec<Option<Owner>>,
}

/// The pairs of a table.
pub(super) const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

impl MeetingCounts {
    /// `bots` bots without meetings and without limits.
    pub(super) fn new(bots: usize) -> Self {
        let met = vec![0; bots * bots.saturating_sub(1) / 2];
        Self { met, floor: 0, ceiling: u16::MAX, short: BELOW_MIN, owners: Vec::new() }
    }

    /// The same with owners, whose bots are kept apart.
    pub(super) fn with_owners(bots: usize, owners: Vec<Option<Owner>>) -> Self {
        Self { owners, ..Self::new(bots) }
    }

    /// Adds a bot without meetings to `bots` others.
    pub(super) fn enter(&mut self, bots: usize) {
        self.met.resize((bots + 1) * bots / 2, 0);
    }

    /// Forgets all meetings.
    pub(super) fn clear(&mut self) {
        self.met.fill(0);
    }

    /// Sets the limits of a pair's meetings.
    pub(super) fn bound(&mut self, floor: u16, ceiling: u16) {
        (self.floor, self.ceiling, self.short) = (floor, ceiling, BELOW_MIN);
    }

    /// From now on the minimum outweighs all other costs.
    pub(super) fn insist(&mut self) {
        self.short = BELOW_MIN_AGAIN;
    }

    fn index(one: Bot, other: Bot) -> usize {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let low = usize::from(low);
        let high = usize::from(high);
        high * (high - 1) / 2 + low
    }

    /// How often two bots meet.
    pub(super) fn of(&self, one: Bot, other: Bot) -> u16 {
        self.met[Self::index(one, other)]
    }

    /// Whether two bots have the same owner.
    pub(super) fn have_same_owner(&self, one: Bot, other: Bot) -> bool {
        same_owner::have_same_owner(&self.owners, one, other)
    }

    /// How many meetings two bots lack to the minimum.
    pub(super) fn missing(&self, one: Bot, other: Bot) -> u16 {
        if self.have_same_owner(one, other) {
            0
        } else {
            self.floor.saturating_sub(self.of(one, other))
        }
    }

    /// The cost of one more meeting of a pair that has met `met` times.
    fn step(&self, met: u16) -> i64 {
        let more = match met {
            _ if met < self.floor => -self.short,
            _ if met >= self.ceiling => ABOVE_MAX,
            _ => 0,
        };
        2 * i64::from(met) + 1 + more
    }

    /// The cost of one more meeting of two bots.
    pub(super) fn price(&self, one: Bot, other: Bot) -> i64 {
        let met = self.of(one, other);
        if self.have_same_owner(one, other) {
            2 * i64::from(met) + 1 + SAME_OWNER
        } else {
            self.step(met)
        }
    }

    /// Adds a meeting of two bots and returns the cost.
    fn raise(&mut self, one: Bot, other: Bot) -> i64 {
        let price = self.price(one, other);
        self.met[Self::index(one, other)] += 1;
        price
    }

    /// Removes a meeting and returns the cost, which is mostly negative.
    fn lower(&mut self, one: Bot, other: Bot) -> i64 {
        self.met[Self::index(one, other)] -= 1;
        -self.price(one, other)
    }

    /// Adds the meetings of `bot` with the others and returns the cost.
    pub(super) fn join(&mut self, bot: Bot, others: &[Bot]) -> i64 {
        others.iter().map(|other| self.raise(bot, *other)).sum()
    }

    /// Removes the meetings of `bot` with the others and returns the cost.
    pub(super) fn part(&mut self, bot: Bot, others: [Bot; SEATS - 1]) -> i64 {
        others.into_iter().map(|other| self.lower(bot, other)).sum()
    }

    /// Adds the meetings of a table.
    pub(super) fn seat(&mut self, table: Table) {
        for (one, other) in PAIRS {
            self.raise(table[one], table[other]);
        }
    }

    /// By how much the meetings at `tables` cost more than if they were distributed as evenly as
    /// possible, on top of all other meetings. With `fixed` = 1 the first bot of each table stays.
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

    /// The lowest possible cost of `more` meetings, of all bots but `host`.
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
