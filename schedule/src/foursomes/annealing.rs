//! Tables for few bots and a number of matches at which pairs cannot all meet equally often. Tables
//! are made one by one from the bots that have met least; then bots exchange places while that
//! helps (simulated annealing).
//!
//! Takes a counter for each pair: O(n²) memory.

use core::cmp::Reverse;

use arbiter_games::Dice;

use super::meeting_counts::MeetingCounts;
use super::{SEATS, Table};
use crate::Bot;

/// How many exchanges are tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// For each table.
    tries: usize,
    /// In all.
    max: usize,
}

impl Effort {
    /// For a plan that is made once.
    pub(super) const GREAT: Self = Self { tries: 20_000, max: 2_000_000 };
    /// For a few more tables, again and again.
    pub(super) const SMALL: Self = Self { tries: 3000, max: 300_000 };
}

/// At first one in this many changes for the worse is kept, later ever fewer.
const WORSE_AT_FIRST: u32 = 300;
/// The cost of a change for the worse that may be kept: one more pair meets too often.
const WORSE: i64 = 2;

/// `count` tables of bots 0 to `bots - 1`. Each bot has equally many matches, or one more, and pairs
/// meet as equally often as the search finds.
pub(super) fn tables(bots: usize, count: usize, dice: &mut Dice) -> Vec<Table> {
    let each = SEATS * count / bots;
    let more = SEATS * count % bots;
    let mut quotas = vec![each; bots];
    quotas[..more].fill(each + 1);
    dice.shuffle(&mut quotas);
    let mut meetings = MeetingCounts::new(bots);
    let mut tables = seat(&mut quotas, count, &mut meetings, dice);
    improve(&mut tables, &mut meetings, 0, Effort::GREAT, dice);
    tables
}

/// Seats bots at `count` tables, each as often as its quota says.
pub(super) fn seat(
    quotas: &mut [usize],
    count: usize,
    meetings: &mut MeetingCounts,
    dice: &mut Dice,
) -> Vec<Table> {
    (0..count)
        .map(|table| {
            let mut seated: Vec<Bot> = Vec::with_capacity(SEATS);
            for _ in 0..SEATS {
                let bot = next(&seated, quotas, count - table, meetings, dice);
                quotas[usize::from(bot)] -= 1;
                meetings.join(bot, &seated);
                seated.push(bot);
            }
            seated.try_into().expect("four are seated")
        })
        .collect()
}

/// The bot that joins those seated: one that must be at all remaining tables, or else the one that met
/// the seated bots least; among equals the one with the highest quota.
fn next(
    seated: &[Bot],
    quotas: &[usize],
    left: usize,
    meetings: &MeetingCounts,
    dice: &mut Dice,
) -> Bot {
    let free = from_random_start(quotas.len(), dice)
        .filter(|bot| quotas[usize::from(*bot)] > 0 && !seated.contains(bot));
    free.min_by_key(|bot| {
        let quota = quotas[usize::from(*bot)];
        let price: i64 = seated.iter().map(|other| meetings.price(*bot, *other)).sum();
        (quota < left, price, Reverse(quota))
    })
    .expect("quotas fill every table")
}

/// All bots in order, from a random one on, wrapping around.
pub(super) fn from_random_start(bots: usize, dice: &mut Dice) -> impl Iterator<Item = Bot> + use<> {
    let start = dice.index(bots);
    let all = (0..=Bot::MAX).take(bots);
    all.clone().skip(start).chain(all.take(start))
}

/// Lowers the cost of the meetings by exchanging bots between tables, except for those in the first
/// `fixed` seats of each table.
///
/// It keeps a few changes for the worse, to leave local optima (simulated annealing with a low
/// starting temperature, since the start is good). It ends early at the lowest possible cost.
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
    let tries = effort.max.min(tables.len() * effort.tries);
    for done in 0..tries {
        if excess == 0 {
            break;
        }
        let [one, other] = [(); 2].map(|()| dice.index(tables.len()));
        let [seat, other_seat] = [(); 2].map(|()| fixed + dice.index(SEATS - fixed));
        let Some(change) = swap(tables, (one, seat), (other, other_seat), meetings) else {
            continue;
        };
        // From one in WORSE_AT_FIRST to one in about a thousand times that.
        let rarity = WORSE_AT_FIRST << (10 * done / tries);
        if change <= 0 || change == WORSE && dice.below(rarity) == 0 {
            excess += change;
        } else {
            let back = swap(tables, (one, seat), (other, other_seat), meetings);
            debug_assert_eq!(back, Some(-change), "a change is undone by itself");
        }
    }
}

/// Exchanges two bots and returns the cost. Returns `None` and does nothing if one of them would meet
/// itself or stay at its table.
fn swap(
    tables: &mut [Table],
    (one, seat): (usize, usize),
    (other, other_seat): (usize, usize),
    meetings: &mut MeetingCounts,
) -> Option<i64> {
    let bot = tables[one][seat];
    let other_bot = tables[other][other_seat];
    if tables[one].contains(&other_bot) || tables[other].contains(&bot) {
        return None;
    }
    let rest = others(tables[one], seat);
    let other_rest = others(tables[other], other_seat);
    let lowered = meetings.part(bot, rest) + meetings.part(other_bot, other_rest);
    let raised = meetings.join(other_bot, &rest) + meetings.join(bot, &other_rest);
    tables[one][seat] = other_bot;
    tables[other][other_seat] = bot;
    Some(raised + lowered)
}

/// The three bots that are not in `seat`.
fn others(table: Table, seat: usize) -> [Bot; SEATS - 1] {
    [1, 2, 3].map(|by| table[(seat + by) % SEATS])
}
