//! Bots of one owner: how to assign the numbers of a design so that few of its tables bring them
//! together.

use std::collections::BTreeMap;

use arbiter_games::Dice;

use super::{SEATS, Table};
use crate::{Bot, Owner, bot};

/// The number of exchanges that are tried for each bot whose owner has several bots.
const TRIES_PER_BOT: usize = 400;
/// The maximum number of tables that are examined.
const MAX_EXAMINED: usize = 30_000_000;

/// Whether two bots have the same owner.
pub(super) fn have_same_owner(owners: &[Option<Owner>], one: Bot, other: Bot) -> bool {
    bot::have_same_owner(owners, one.into(), other.into())
}

/// Whether two bots of a table have the same owner.
pub(super) fn has_pair(owners: &[Option<Owner>], table: Table) -> bool {
    let beside = |seat: usize| {
        table[..seat].iter().any(|other| have_same_owner(owners, table[seat], *other))
    };
    !owners.is_empty() && (1..SEATS).any(beside)
}

/// The bot with each number of a design with these tables. At first each bot has its own number;
/// then bots exchange numbers while that leaves fewer tables to replace.
pub(super) fn assign_numbers(
    tables: &[Table],
    owners: &[Option<Owner>],
    dice: &mut Dice,
) -> Vec<Bot> {
    let mut order: Vec<Bot> = (0..=Bot::MAX).take(owners.len()).collect();
    let mut groups: BTreeMap<Owner, Vec<Bot>> = BTreeMap::new();
    for (bot, owner) in order.iter().zip(owners) {
        if let Some(owner) = owner {
            groups.entry(*owner).or_default().push(*bot);
        }
    }
    groups.retain(|_, bots| bots.len() > 1);
    let members: Vec<(Bot, &Vec<Bot>)> =
        groups.values().flat_map(|bots| bots.iter().map(move |bot| (*bot, bots))).collect();
    if members.is_empty() {
        return order;
    }
    let mut at = vec![Vec::new(); owners.len()];
    for (number, table) in (0_u32..).zip(tables) {
        for bot in table {
            at[usize::from(*bot)].push(number);
        }
    }
    let mut number: Vec<usize> = (0..owners.len()).collect();
    let tries = (TRIES_PER_BOT * members.len()).min(MAX_EXAMINED / (4 * at[0].len()).max(1));
    for _ in 0..tries {
        let (bot, group) = members[dice.index(members.len())];
        let mate = group[dice.index(group.len())];
        let beside = &at[number[usize::from(mate)]];
        let table = tables[beside[dice.index(beside.len())] as usize];
        let from = number[usize::from(bot)];
        let to = usize::from(table[dice.index(SEATS)]);
        if bot == mate || have_same_owner(owners, bot, order[to]) {
            continue;
        }
        let cost = |order: &[Bot]| -> i32 {
            let both = at[from].iter().chain(&at[to]);
            both.map(|table| extra_tables(tables[*table as usize], order, owners)).sum()
        };
        let before = cost(&order);
        order.swap(from, to);
        if cost(&order) > before {
            order.swap(from, to);
        }
        number[usize::from(order[from])] = from;
        number[usize::from(order[to])] = to;
    }
    order
}

/// How many more tables the plan will have because this one must be replaced to keep owners apart:
/// its other pairs meet again at two to four tables, unless all four bots have one owner.
fn extra_tables(table: Table, order: &[Bot], owners: &[Option<Owner>]) -> i32 {
    let seated = table.map(|number| order[usize::from(number)]);
    let pairs = (1..SEATS).flat_map(|one| (0..one).map(move |other| (one, other)));
    match pairs.filter(|(one, other)| have_same_owner(owners, seated[*one], seated[*other])).count()
    {
        0 => 0,
        1 => 1,
        2 => 3,
        3 => 2,
        _ => -1,
    }
}
