//! Tables for few bots and a number of matches at which pairs cannot all meet equally often. First,
//! each table is filled with the bots that have met least. Then simulated annealing exchanges bots
//! between tables.
//!
//! It has a counter for each pair: O(n²) memory.

use core::cmp::Reverse;

use arbiter_games::Dice;

use super::meeting_counts::MeetingCounts;
use super::{SEATS, Table};
use crate::Bot;

/// The number of exchanges to try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// The number for each table.
    tries_per_table: usize,
    /// The maximum in total.
    max: usize,
}

impl Effort {
    /// For a whole plan.
    pub(super) const GREAT: Self = Self { tries_per_table: 20_000, max: 2_000_000 };
    /// For a few additional tables.
    pub(super) const SMALL: Self = Self { tries_per_table: 3000, max: 300_000 };
}

/// The initial probability of accepting a worse exchange is 1 / this number. It falls with time.
const INITIAL_RARITY: u32 = 300;
/// The cost of a worse exchange that may be accepted: one more pair meets too often.
const ACCEPTABLE_COST: i64 = 2;

/// `count` tables of bots 0 to `bots - 1`. The numbers of matches of two bots differ by at most
/// one. The numbers of meetings of pairs differ as little as the search finds.
pub(super) fn tables(bots: usize, count: usize, dice: &mut Dice) -> Vec<Table> {
    let quota = SEATS * count / bots;
    let larger_quotas = SEATS * count % bots;
    let mut quotas = vec![quota; bots];
    quotas[..larger_quotas].fill(quota + 1);
    dice.shuffle(&mut quotas);
    let mut meetings = MeetingCounts::new(bots);
    let mut tables = fill_tables(&mut quotas, count, &mut meetings, dice);
    improve(&mut tables, &mut meetings, 0, Effort::GREAT, dice);
    tables
}

/// Fills `count` tables with bots. Each bot gets the number of matches in its quota.
pub(super) fn fill_tables(
    quotas: &mut [usize],
    count: usize,
    meetings: &mut MeetingCounts,
    dice: &mut Dice,
) -> Vec<Table> {
    (0..count)
        .map(|table| {
            let mut seated: Vec<Bot> = Vec::with_capacity(SEATS);
            for _ in 0..SEATS {
                let bot = next_bot(&seated, quotas, count - table, meetings, dice);
                quotas[usize::from(bot)] -= 1;
                meetings.add_bot(bot, seated.iter().copied());
                seated.push(bot);
            }
            seated.try_into().expect("a table has four bots")
        })
        .collect()
}

/// The next bot for a table: a bot that must be at all remaining tables, or else the bot that met
/// the seated bots least. Ties go to the bot with the highest quota.
fn next_bot(
    seated: &[Bot],
    quotas: &[usize],
    remaining_tables: usize,
    meetings: &MeetingCounts,
    dice: &mut Dice,
) -> Bot {
    let free = from_random_start(quotas.len(), dice)
        .filter(|bot| quotas[usize::from(*bot)] > 0 && !seated.contains(bot));
    free.min_by_key(|bot| {
        let quota = quotas[usize::from(*bot)];
        let cost: i64 = seated.iter().map(|other| meetings.cost(*bot, *other)).sum();
        (quota < remaining_tables, cost, Reverse(quota))
    })
    .expect("quotas fill every table")
}

/// All bots in order, beginning with a random bot and continuing with bot 0 after the last one.
pub(super) fn from_random_start(bots: usize, dice: &mut Dice) -> impl Iterator<Item = Bot> + use<> {
    let start = dice.index(bots);
    let all = (0..=Bot::MAX).take(bots);
    all.clone().skip(start).chain(all.take(start))
}

/// Lowers the cost of the meetings by exchanging bots between tables, except for those in the first
/// `fixed` seats of each table.
///
/// This is simulated annealing. It accepts a few worse exchanges, to leave local optima. The
/// initial temperature is low, since the initial tables are good. The search ends early at the
/// lowest possible cost.
pub(super) fn improve(
    tables: &mut [Table],
    meetings: &mut MeetingCounts,
    fixed: usize,
    effort: Effort,
    dice: &mut Dice,
) {
    if tables.len() < 2 {
        return;
    }
    let mut excess = meetings.excess(tables, fixed);
    let tries = effort.max.min(tables.len() * effort.tries_per_table);
    for attempt in 0..tries {
        if excess == 0 {
            break;
        }
        let [table, other_table] = [(); 2].map(|()| dice.index(tables.len()));
        let [seat, other_seat] = [(); 2].map(|()| fixed + dice.index(SEATS - fixed));
        let Some(change) = swap(tables, (table, seat), (other_table, other_seat), meetings) else {
            continue;
        };
        // The rarity grows to about a thousand times its initial value.
        let rarity = INITIAL_RARITY << (10 * attempt / tries);
        if change <= 0 || change == ACCEPTABLE_COST && dice.below(rarity) == 0 {
            excess += change;
        } else {
            let undo_change = swap(tables, (table, seat), (other_table, other_seat), meetings);
            debug_assert_eq!(undo_change, Some(-change), "a second swap undoes the first one");
        }
    }
}

/// Exchanges two bots and returns the change of the cost. Returns `None`, without a change, if a
/// bot would meet itself or stay at its table.
fn swap(
    tables: &mut [Table],
    (table, seat): (usize, usize),
    (other_table, other_seat): (usize, usize),
    meetings: &mut MeetingCounts,
) -> Option<i64> {
    let bot = tables[table][seat];
    let other_bot = tables[other_table][other_seat];
    if tables[table].contains(&other_bot) || tables[other_table].contains(&bot) {
        return None;
    }
    let companions = other_bots(tables[table], seat);
    let other_companions = other_bots(tables[other_table], other_seat);
    let removed_cost =
        meetings.remove_bot(bot, companions) + meetings.remove_bot(other_bot, other_companions);
    let added_cost =
        meetings.add_bot(other_bot, companions) + meetings.add_bot(bot, other_companions);
    tables[table][seat] = other_bot;
    tables[other_table][other_seat] = bot;
    Some(added_cost + removed_cost)
}

/// The three bots that are not in `seat`.
fn other_bots(table: Table, seat: usize) -> [Bot; SEATS - 1] {
    [1, 2, 3].map(|offset| table[(seat + offset) % SEATS])
}
