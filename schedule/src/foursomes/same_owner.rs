//! Assigns the numbers of a design to bots, so that few of its tables have two bots of one owner.

use std::collections::BTreeMap;

use arbiter_games::Dice;

use super::{SEATS, Table};
use crate::{Bot, Owner, bot};

/// The number of exchanges to try for each bot whose owner has several bots.
const TRIES_PER_BOT: usize = 400;
/// The maximum number of tables to examine.
const MAX_EXAMINED: usize = 30_000_000;

/// Whether two bots have the same owner.
pub(super) fn have_same_owner(owners: &[Option<Owner>], first: Bot, second: Bot) -> bool {
    bot::have_same_owner(owners, first.into(), second.into())
}

/// Whether two bots of a table have the same owner.
pub(super) fn has_pair(owners: &[Option<Owner>], table: Table) -> bool {
    let has_pair_with = |seat: usize| {
        table[..seat].iter().any(|other| have_same_owner(owners, table[seat], *other))
    };
    !owners.is_empty() && (1..SEATS).any(has_pair_with)
}

/// The bot with each number of a design with these tables. At first, bot b has number b. Then bots
/// exchange numbers, unless this increases the number of tables to replace.
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
    let mut tables_of = vec![Vec::new(); owners.len()];
    for (number, table) in (0_u32..).zip(tables) {
        for bot in table {
            tables_of[usize::from(*bot)].push(number);
        }
    }
    let mut number: Vec<usize> = (0..owners.len()).collect();
    let tries = (TRIES_PER_BOT * members.len()).min(MAX_EXAMINED / (4 * tables_of[0].len()).max(1));
    for _ in 0..tries {
        let (bot, group) = members[dice.index(members.len())];
        let partner = group[dice.index(group.len())];
        let partner_tables = &tables_of[number[usize::from(partner)]];
        let table = tables[partner_tables[dice.index(partner_tables.len())] as usize];
        let from = number[usize::from(bot)];
        let to = usize::from(table[dice.index(SEATS)]);
        if bot == partner || have_same_owner(owners, bot, order[to]) {
            continue;
        }
        let cost = |order: &[Bot]| -> i32 {
            let affected = tables_of[from].iter().chain(&tables_of[to]);
            affected.map(|table| extra_tables(tables[*table as usize], order, owners)).sum()
        };
        let old_cost = cost(&order);
        order.swap(from, to);
        if cost(&order) > old_cost {
            order.swap(from, to);
        }
        number[usize::from(order[from])] = from;
        number[usize::from(order[to])] = to;
    }
    order
}

/// The number of additional tables if this table must be replaced to keep owners apart. Its other
/// pairs need two to four new tables, or none if all four bots have one owner.
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
