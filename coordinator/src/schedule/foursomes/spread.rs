//! Tables for a few bots and a number of matches at which pairs cannot all meet equally often: who
//! has met whom is counted, tables are made one by one from those who met least, and then bots
//! change places as long as that helps.
//!
//! What is kept is a number for each pair, O(n²).

use core::cmp::Reverse;

use arbiter_games::Dice;

use super::{SEATS, Table};
use crate::schedule::Bot;

/// How many changes are tried for each table.
const TRIES_PER_TABLE: usize = 20_000;
/// How many are tried in all.
const MOST_TRIES: usize = 2_000_000;
/// In the beginning one change in so many that makes matters worse is kept, and ever fewer later.
const WORSE_AT_FIRST: u32 = 300;
/// By how much a change that may be kept makes matters worse: one pair more meets too often.
const WORSE: i32 = 2;

/// How often each pair meets.
#[derive(Debug)]
struct Meetings(Vec<u8>);

impl Meetings {
    fn new(bots: usize) -> Self {
        Self(vec![0; bots * (bots - 1) / 2])
    }

    fn of(&mut self, one: Bot, other: Bot) -> &mut u8 {
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        let (low, high) = (usize::from(low), usize::from(high));
        &mut self.0[high * (high - 1) / 2 + low]
    }

    /// Lets `bot` meet the others; by how much that raises the sum of squares.
    fn join(&mut self, bot: Bot, others: [Bot; SEATS - 1]) -> i32 {
        let raise = |other| {
            let met = self.of(bot, other);
            *met += 1;
            2 * i32::from(*met) - 1
        };
        others.into_iter().map(raise).sum()
    }

    /// Takes back that `bot` met the others; by how much that lowers the sum of squares.
    fn part(&mut self, bot: Bot, others: [Bot; SEATS - 1]) -> i32 {
        let lower = |other| {
            let met = self.of(bot, other);
            *met -= 1;
            2 * i32::from(*met) + 1
        };
        others.into_iter().map(lower).sum()
    }
}

/// `count` tables of bots below `bots`, at which each has equally many matches, or one more, and
/// pairs meet as equally often as is found.
pub(super) fn tables(bots: usize, count: usize, dice: &mut Dice) -> Vec<Table> {
    let (each, more) = (SEATS * count / bots, SEATS * count % bots);
    let mut quotas = vec![each; bots];
    quotas[..more].fill(each + 1);
    dice.shuffle(&mut quotas);
    let mut meetings = Meetings::new(bots);
    let mut tables = seat(&mut quotas, count, &mut meetings, dice);
    improve(&mut tables, &mut meetings, 0, dice);
    tables
}

/// `count` tables, all of which the last of `bots` is at, first in each; the others have equally
/// many matches, or one more, and meet as equally often as is found.
pub(super) fn tables_with_last(bots: usize, count: usize, dice: &mut Dice) -> Vec<Table> {
    let others = bots - 1;
    let (each, more) = ((SEATS - 1) * count / others, (SEATS - 1) * count % others);
    let mut quotas = vec![each; others];
    quotas[..more].fill(each + 1);
    dice.shuffle(&mut quotas);
    quotas.push(count);
    let mut meetings = Meetings::new(bots);
    let mut tables = seat(&mut quotas, count, &mut meetings, dice);
    let last = quotas.len() - 1;
    for table in &mut tables {
        let found = table.iter().position(|bot| usize::from(*bot) == last);
        table.swap(0, found.expect("its quota is all tables"));
    }
    improve(&mut tables, &mut meetings, 1, dice);
    tables
}

/// Seats bots at `count` tables, each as often as its quota says.
fn seat(
    quotas: &mut [usize],
    count: usize,
    meetings: &mut Meetings,
    dice: &mut Dice,
) -> Vec<Table> {
    (0..count)
        .map(|table| {
            let mut seated: Vec<Bot> = Vec::with_capacity(SEATS);
            for _ in 0..SEATS {
                let bot = next(&seated, quotas, count - table, meetings, dice);
                quotas[usize::from(bot)] -= 1;
                for other in &seated {
                    *meetings.of(bot, *other) += 1;
                }
                seated.push(bot);
            }
            seated.try_into().expect("four are seated")
        })
        .collect()
}

/// Who joins those seated: one whose quota is all tables that are left, else, of those who met
/// the seated least, one with the highest quota.
fn next(
    seated: &[Bot],
    quotas: &[usize],
    left: usize,
    meetings: &mut Meetings,
    dice: &mut Dice,
) -> Bot {
    let start = dice.index(quotas.len());
    let all = (0..=Bot::MAX).take(quotas.len());
    let turned = all.clone().skip(start).chain(all.take(start));
    let free = turned.filter(|bot| quotas[usize::from(*bot)] > 0 && !seated.contains(bot));
    free.min_by_key(|bot| {
        let quota = quotas[usize::from(*bot)];
        let met: u32 =
            seated.iter().map(|other| 2 * u32::from(*meetings.of(*bot, *other)) + 1).sum();
        (quota < left, met, Reverse(quota))
    })
    .expect("quotas fill every table")
}

/// Lets bots change places, except for those in the first `fixed` of each table, so that the sum
/// of the squares of meetings falls.
///
/// A few changes for the worse are kept, in order to leave arrangements that no single change
/// improves (simulated annealing, begun cold: the start is good). It ends early at the least sum
/// that is possible.
fn improve(tables: &mut [Table], meetings: &mut Meetings, fixed: usize, dice: &mut Dice) {
    if tables.len() < 2 {
        return;
    }
    let squares = |met: &u8| u64::from(*met).pow(2);
    let sum: u64 = meetings.0.iter().map(squares).sum();
    let least = least_squares(meetings, tables, fixed);
    let mut excess = i64::try_from(sum - least).expect("sums of a few bots are small");
    let tries = MOST_TRIES.min(tables.len() * TRIES_PER_TABLE);
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
            excess += i64::from(change);
        } else {
            let back = swap(tables, (one, seat), (other, other_seat), meetings);
            debug_assert_eq!(back, Some(-change), "a change is undone by itself");
        }
    }
}

/// The least sum of squares with so many meetings: all pairs are within one of each other. The
/// pairs of a bot that is first in every table cannot change.
fn least_squares(meetings: &mut Meetings, tables: &[Table], fixed: usize) -> u64 {
    let level = |pairs: u64, total: u64| {
        let (each, more) = (total / pairs, total % pairs);
        more * (each + 1).pow(2) + (pairs - more) * each.pow(2)
    };
    let pairs = meetings.0.len() as u64;
    let met = 6 * tables.len() as u64;
    if fixed == 0 {
        return level(pairs, met);
    }
    let last = tables[0][0];
    let own: Vec<_> = (0..last).map(|bot| u64::from(*meetings.of(bot, last))).collect();
    let own_squares: u64 = own.iter().map(|met| met.pow(2)).sum();
    own_squares + level(pairs - own.len() as u64, met - own.iter().sum::<u64>())
}

/// Lets two bots change places; by how much that raises the sum of squares. Nothing is done if one
/// of them would meet itself or stay at its table.
fn swap(
    tables: &mut [Table],
    (one, seat): (usize, usize),
    (other, other_seat): (usize, usize),
    meetings: &mut Meetings,
) -> Option<i32> {
    let (bot, other_bot) = (tables[one][seat], tables[other][other_seat]);
    if tables[one].contains(&other_bot) || tables[other].contains(&bot) {
        return None;
    }
    let rest = beside(tables[one], seat);
    let other_rest = beside(tables[other], other_seat);
    let lowered = meetings.part(bot, rest) + meetings.part(other_bot, other_rest);
    let raised = meetings.join(other_bot, rest) + meetings.join(bot, other_rest);
    tables[one][seat] = other_bot;
    tables[other][other_seat] = bot;
    Some(raised - lowered)
}

/// The three who are not in `seat`.
fn beside(table: Table, seat: usize) -> [Bot; SEATS - 1] {
    [1, 2, 3].map(|by| table[(seat + by) % SEATS])
}
