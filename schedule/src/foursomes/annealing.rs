//! Tables for a few bots and a number of matches at which pairs cannot all meet equally often: who
//! has met whom is counted, tables are made one by one from those who met least, and then bots
//! change places as long as that helps.
//!
//! What is kept is a number for each pair, O(n²).

use core::cmp::Reverse;

use arbiter_games::Dice;

use super::meeting_counts::MeetingCounts;
use super::{SEATS, Table};
use crate::Bot;

/// How many changes are tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// For each table.
    tries: usize,
    /// In all.
    most: usize,
}

impl Effort {
    /// For a plan that is made once.
    pub(super) const GREAT: Self = Self { tries: 20_000, most: 2_000_000 };
    /// For a few tables more, time and again.
    pub(super) const SMALL: Self = Self { tries: 3000, most: 300_000 };
}

/// In the beginning one change in so many that makes matters worse is kept, and ever fewer later.
const WORSE_AT_FIRST: u32 = 300;
/// By how much a change that may be kept makes matters worse: one pair more meets too often.
const WORSE: i64 = 2;

/// `count` tables of bots below `bots`, at which each has equally many matches, or one more, and
/// pairs meet as equally often as is found.
pub(super) fn tables(bots: usize, count: usize, dice: &mut Dice) -> Vec<Table> {
    let (each, more) = (SEATS * count / bots, SEATS * count % bots);
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

/// Who joins those seated: one whose quota is all tables that are left, else, of those who met
/// the seated least, one with the highest quota.
fn next(
    seated: &[Bot],
    quotas: &[usize],
    left: usize,
    meetings: &MeetingCounts,
    dice: &mut Dice,
) -> Bot {
    let free = turned(quotas.len(), dice)
        .filter(|bot| quotas[usize::from(*bot)] > 0 && !seated.contains(bot));
    free.min_by_key(|bot| {
        let quota = quotas[usize::from(*bot)];
        let price: i64 = seated.iter().map(|other| meetings.price(*bot, *other)).sum();
        (quota < left, price, Reverse(quota))
    })
    .expect("quotas fill every table")
}

/// All bots in their order, from a random one on.
pub(super) fn turned(bots: usize, dice: &mut Dice) -> impl Iterator<Item = Bot> + use<> {
    let start = dice.index(bots);
    let all = (0..=Bot::MAX).take(bots);
    all.clone().skip(start).chain(all.take(start))
}

/// Lets bots change places, except for those in the first `fixed` of each table, so that their
/// meetings cost less.
///
/// A few changes for the worse are kept, in order to leave arrangements that no single change
/// improves (simulated annealing, begun cold: the start is good). It ends early at the least cost
/// that is possible.
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
    let tries = effort.most.min(tables.len() * effort.tries);
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

/// Lets two bots change places; what that costs. Nothing is done if one of them would meet itself
/// or stay at its table.
fn swap(
    tables: &mut [Table],
    (one, seat): (usize, usize),
    (other, other_seat): (usize, usize),
    meetings: &mut MeetingCounts,
) -> Option<i64> {
    let (bot, other_bot) = (tables[one][seat], tables[other][other_seat]);
    if tables[one].contains(&other_bot) || tables[other].contains(&bot) {
        return None;
    }
    let rest = beside(tables[one], seat);
    let other_rest = beside(tables[other], other_seat);
    let lowered = meetings.part(bot, rest) + meetings.part(other_bot, other_rest);
    let raised = meetings.join(other_bot, &rest) + meetings.join(bot, &other_rest);
    tables[one][seat] = other_bot;
    tables[other][other_seat] = bot;
    Some(raised + lowered)
}

/// The three who are not in `seat`.
fn beside(table: Table, seat: usize) -> [Bot; SEATS - 1] {
    [1, 2, 3].map(|by| table[(seat + by) % SEATS])
}
