//! The number of meetings of each pair, and the cost of one more meeting.
//!
//! The cost of a pair is the square of its number of meetings, so the most even distribution is the
//! cheapest. If limits are set, there are penalties: a high one for a pair below the minimum, a
//! higher one for a pair above the maximum, and the highest for a meeting of two bots of one owner.

use super::{Table, same_owner};
use crate::{Bot, Owner};

/// The penalty for one meeting below the minimum. It is larger than all squares.
const BELOW_MIN: i64 = 1 << 24;
/// The penalty for one meeting above the maximum.
const ABOVE_MAX: i64 = 4 * BELOW_MIN;
/// The penalty for one meeting below the minimum after [`MeetingCounts::prioritize_min`].
const BELOW_REACHED_MIN: i64 = 1 << 30;
/// The penalty for a meeting of two bots of one owner.
const SAME_OWNER: i64 = 1 << 36;

/// The number of meetings of each pair: O(n²) counters.
#[derive(Debug)]
pub(crate) struct MeetingCounts {
    counts: Vec<u16>,
    /// The minimum number of meetings of a pair.
    min: u16,
    /// The target maximum number of meetings of a pair.
    max: u16,
    /// The present penalty for one meeting below the minimum.
    below_min: i64,
    /// The owners of the bots; empty if owners do not matter.
    owners: Vec<Option<Owner>>,
}

/// The pairs of a table.
pub(super) const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];

impl MeetingCounts {
    /// `bots` bots without meetings and without limits.
    pub(crate) fn new(bots: usize) -> Self {
        let counts = vec![0; bots * bots.saturating_sub(1) / 2];
        Self { counts, min: 0, max: u16::MAX, below_min: BELOW_MIN, owners: Vec::new() }
    }

    /// Like [`Self::new`] with owners, whose bots are kept apart.
    pub(super) fn with_owners(bots: usize, owners: Vec<Option<Owner>>) -> Self {
        Self { owners, ..Self::new(bots) }
    }

    /// Adds a bot without meetings. `bots` is the number of other bots.
    pub(crate) fn add_place(&mut self, bots: usize) {
        self.counts.resize((bots + 1) * bots / 2, 0);
    }

    /// Removes all meetings.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Sets the limits of a pair's meetings.
    pub(super) fn set_limits(&mut self, min: u16, max: u16) {
        (self.min, self.max, self.below_min) = (min, max, BELOW_MIN);
    }

    /// Raises the penalty below the minimum. Call it when all pairs have reached the minimum, so
    /// that exchanges do not undo it.
    pub(super) fn prioritize_min(&mut self) {
        self.below_min = BELOW_REACHED_MIN;
    }

    fn index(first: Bot, second: Bot) -> usize {
        let low = usize::from(first.min(second));
        let high = usize::from(first.max(second));
        high * (high - 1) / 2 + low
    }

    /// The number of meetings of two bots.
    pub(crate) fn of(&self, first: Bot, second: Bot) -> u16 {
        self.counts[Self::index(first, second)]
    }

    /// Whether two bots have the same owner.
    pub(super) fn have_same_owner(&self, first: Bot, second: Bot) -> bool {
        same_owner::have_same_owner(&self.owners, first, second)
    }

    /// The number of meetings of two bots below the minimum.
    pub(super) fn missing(&self, first: Bot, second: Bot) -> u16 {
        if self.have_same_owner(first, second) {
            0
        } else {
            self.min.saturating_sub(self.of(first, second))
        }
    }

    /// The cost of one more meeting of a pair after `count` meetings.
    fn step(&self, count: u16) -> i64 {
        let penalty = match count {
            _ if count < self.min => -self.below_min,
            _ if count >= self.max => ABOVE_MAX,
            _ => 0,
        };
        2 * i64::from(count) + 1 + penalty
    }

    /// The cost of one more meeting of two bots.
    pub(crate) fn cost(&self, first: Bot, second: Bot) -> i64 {
        let count = self.of(first, second);
        if self.have_same_owner(first, second) {
            2 * i64::from(count) + 1 + SAME_OWNER
        } else {
            self.step(count)
        }
    }

    /// How much the cost falls if a pair without limits meets once less.
    pub(crate) fn gain(&self, first: Bot, second: Bot) -> i64 {
        2 * i64::from(self.of(first, second)) - 1
    }

    /// Exchanges the meetings of two of `bots` bots with all others.
    pub(crate) fn swap(&mut self, first: Bot, second: Bot, bots: usize) {
        for other in (0..=Bot::MAX).take(bots).filter(|other| ![first, second].contains(other)) {
            self.counts.swap(Self::index(first, other), Self::index(second, other));
        }
    }

    /// Adds a meeting of two bots. Returns the change of the cost.
    fn add(&mut self, first: Bot, second: Bot) -> i64 {
        let cost = self.cost(first, second);
        self.counts[Self::index(first, second)] += 1;
        cost
    }

    /// Removes a meeting of two bots. Returns the change of the cost, which is usually negative.
    fn remove(&mut self, first: Bot, second: Bot) -> i64 {
        self.counts[Self::index(first, second)] -= 1;
        -self.cost(first, second)
    }

    /// Adds the meetings of `bot` with the other bots. Returns the change of the cost.
    pub(crate) fn add_bot(&mut self, bot: Bot, others: impl IntoIterator<Item = Bot>) -> i64 {
        others.into_iter().map(|other| self.add(bot, other)).sum()
    }

    /// Removes the meetings of `bot` with the other bots. Returns the change of the cost.
    pub(crate) fn remove_bot(&mut self, bot: Bot, others: impl IntoIterator<Item = Bot>) -> i64 {
        others.into_iter().map(|other| self.remove(bot, other)).sum()
    }

    /// Adds the meetings of a table.
    pub(super) fn add_table(&mut self, table: Table) {
        for (first, second) in PAIRS {
            self.add(table[first], table[second]);
        }
    }

    /// The difference between the cost of the meetings at `tables` and its lower bound, given all
    /// other meetings. With `fixed` = 1, the first bot of each table does not change.
    pub(super) fn excess(&mut self, tables: &[Table], fixed: usize) -> i64 {
        let pairs = || PAIRS.into_iter().filter(|(first, _)| *first >= fixed);
        let mut cost = 0;
        for table in tables {
            cost -= pairs()
                .map(|(first, second)| self.remove(table[first], table[second]))
                .sum::<i64>();
        }
        let fixed_bot = (fixed > 0).then(|| tables[0][0]);
        let min_cost = self.min_cost((pairs().count() * tables.len()) as u64, fixed_bot);
        for table in tables {
            for (first, second) in pairs() {
                self.add(table[first], table[second]);
            }
        }
        cost - min_cost
    }

    /// The lowest possible cost of `meetings` more meetings between all bots except `fixed_bot`.
    fn min_cost(&self, mut meetings: u64, fixed_bot: Option<Bot>) -> i64 {
        let mut histogram = std::collections::BTreeMap::new();
        let bots = 0..=Bot::MAX;
        let mut counts = self.counts.iter();
        for high in bots.skip(1) {
            if counts.len() == 0 {
                break;
            }
            for (low, count) in (0..high).zip(&mut counts) {
                let is_fixed = fixed_bot.is_some_and(|bot| bot == high || bot == low);
                if !is_fixed && !self.have_same_owner(high, low) {
                    *histogram.entry(*count).or_insert(0_u64) += 1;
                }
            }
        }
        let mut cost = 0;
        while meetings > 0
            && let Some((count, pairs)) = histogram.pop_first()
        {
            let added = pairs.min(meetings);
            cost += self.step(count) * added.cast_signed();
            *histogram.entry(count + 1).or_insert(0) += added;
            meetings -= added;
            if added < pairs {
                break;
            }
        }
        cost
    }
}
