//! Assigns seats at known tables: each bot has each seat equally often, or once more.
//!
//! A *place* is one bot at one table. Places are split into two halves, such that each table has two
//! places in each half, and each bot has equally many in both, or one more in one of them. Each half
//! is split again in the same way. The four quarters are the seats.
//!
//! To split, the places of a table are paired, and so are the places of each bot, as far as possible.
//! A place is then in at most two pairs, so pairs form paths and even cycles. Putting the places
//! along them into the two halves alternately separates all pairs (an Euler split; de Werra,
//! "Equitable colorations of graphs", 1971).

use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::meeting_counts::PAIRS;
use super::{SEATS, Table};

/// No place: the end of a path.
const NONE: u32 = u32::MAX;

/// Reorders the bots of each table.
///
/// # Panics
/// If there are 2³⁰ tables or more.
pub(super) fn balance(tables: &mut [Table], bots: usize) {
    let places = u32::try_from(tables.len() * SEATS).expect("loose tables are few");
    // The pairs within tables: at first places 0 and 1, 2 and 3.
    let mut beside: Vec<u32> = (0..places).map(|place| place ^ 1).collect();
    let halves = split(tables, bots, &beside, &vec![false; places as usize]);
    for (number, table) in halves.chunks_exact(SEATS).enumerate() {
        let first = number * SEATS;
        for half in [false, true] {
            let mut pair = (0..SEATS).filter(|seat| table[*seat] == half);
            let pair = [(); 2].map(|()| first + pair.next().expect("half of a table has two"));
            for (one, other) in [(0, 1), (1, 0)] {
                beside[pair[one]] = u32::try_from(pair[other]).expect("it is a place");
            }
        }
    }
    let quarters = split(tables, bots, &beside, &halves);
    for (number, table) in tables.iter_mut().enumerate() {
        let seated = *table;
        for (seat, bot) in seated.into_iter().enumerate() {
            let place = number * SEATS + seat;
            table[2 * usize::from(halves[place]) + usize::from(quarters[place])] = bot;
        }
    }
}

/// Splits the places of each part into halves.
fn split(tables: &[Table], bots: usize, beside: &[u32], parts: &[bool]) -> Vec<bool> {
    let paired = pair_by_bot(tables, bots, parts);
    let mut halves = vec![false; beside.len()];
    let mut done = vec![false; beside.len()];
    let mut walk = |start: usize| {
        let mut place = start;
        while !done[place] {
            let other = beside[place] as usize;
            (done[place], done[other]) = (true, true);
            halves[other] = true;
            if paired[other] == NONE {
                break;
            }
            place = paired[other] as usize;
        }
    };
    (0..beside.len()).filter(|place| paired[*place] == NONE).for_each(&mut walk);
    (0..beside.len()).for_each(&mut walk);
    halves
}

/// For each place: the place that it is paired with among those of its bot, or none.
fn pair_by_bot(tables: &[Table], bots: usize, parts: &[bool]) -> Vec<u32> {
    let mut paired = vec![NONE; parts.len()];
    let mut open = vec![NONE; 2 * bots];
    for (place, bot) in (0..).zip(tables.iter().flatten()) {
        let open = &mut open[2 * usize::from(*bot) + usize::from(parts[place as usize])];
        if *open == NONE {
            *open = place;
        } else {
            paired[place as usize] = *open;
            paired[*open as usize] = place;
            *open = NONE;
        }
    }
    paired
}

/// The maximum number of passes over all tables.
const MAX_PASSES: usize = 8;

/// Reorders the bots of each table, where bot b already had seat s `before[b][s]` times. Each table
/// in turn gets the order that suits its four bots best, and so on until nothing changes. The aim is
/// a difference of at most one between a bot's seats, which is not always possible.
pub(super) fn settle(tables: &mut [Table], before: &[[u32; SEATS]]) {
    let mut times = before.to_vec();
    for table in tables.iter() {
        count(&mut times, *table, |times| times + 1);
    }
    let orders = orders();
    for _ in 0..MAX_PASSES {
        let mut changed = false;
        for table in tables.iter_mut() {
            count(&mut times, *table, |times| times - 1);
            let seated = orders.iter().map(|order| order.map(|place| table[place]));
            let best = seated.min_by_key(|seated| {
                let costs = seated.iter().enumerate().map(|(seat, bot)| {
                    let times = &times[usize::from(*bot)];
                    let fewest = times.iter().min().expect("there are seats");
                    (times[seat] - fewest).pow(2)
                });
                (costs.sum::<u32>(), seated != table)
            });
            let best = best.expect("there are orders");
            changed |= best != *table;
            *table = best;
            count(&mut times, *table, |times| times + 1);
        }
        if !changed {
            break;
        }
    }
}

/// In an incremental plan: the maximum difference between the numbers of times that a bot has each
/// seat.
const MAX_SPREAD: u32 = 3;

/// Reorders tables until the seats of every bot differ by at most [`MAX_SPREAD`], or these tables
/// allow no improvement. `times` is how often each bot has each seat, at these and all other tables.
/// No bot changes tables, and if no bot exceeds the limit, nothing changes.
///
/// A bot that has one seat too often exchanges seats with another bot at one table. If that makes the
/// other bot's seats too uneven, it moves back at another table, where the next bot must move, and so
/// on. A breadth-first search finds the shortest such chain. Each chain lowers the sum of all
/// excesses, so the loop ends.
pub(super) fn limit_spread(tables: &mut [Table], times: &mut [[u32; SEATS]]) {
    if times.iter().all(|times| excess(times) == 0) {
        return;
    }
    let mut tables_of = vec![Vec::new(); times.len()];
    for (number, table) in tables.iter().enumerate() {
        for bot in table {
            tables_of[usize::from(*bot)].push(number);
        }
    }
    loop {
        let uneven = (0..times.len()).filter(|bot| !tables_of[*bot].is_empty());
        let moves = uneven.flat_map(|bot| moves(&times[bot]).into_iter().map(move |to| (bot, to)));
        let mut chains = moves.filter_map(|(bot, seats)| {
            chain(tables, times, &tables_of, bot, seats).map(|chain| (seats, chain))
        });
        let Some(((from, to), chain)) = chains.next() else { break };
        for number in chain {
            let table = &mut tables[number];
            count(times, *table, |times| times - 1);
            table.swap(from, to);
            count(times, *table, |times| times + 1);
        }
    }
}

/// By how much a bot's seats exceed the limit, added over all pairs of seats.
fn excess(times: &[u32; SEATS]) -> u32 {
    let pairs = PAIRS.into_iter().map(|(one, other)| times[one].abs_diff(times[other]));
    pairs.map(|apart| apart.saturating_sub(MAX_SPREAD)).sum()
}

/// The seats from and to which a bot should move, the most needed first.
fn moves(times: &[u32; SEATS]) -> Vec<(usize, usize)> {
    let pairs = PAIRS.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]);
    let mut pairs: Vec<_> =
        pairs.filter(|(from, to)| times[*from] > times[*to] + MAX_SPREAD).collect();
    pairs.sort_by_key(|(from, to)| Reverse(times[*from] - times[*to]));
    pairs
}

/// The tables at which two seats are exchanged, so that `bot` moves once from the one to the other
/// and only the last bot of the chain moves back.
fn chain(
    tables: &[Table],
    times: &[[u32; SEATS]],
    tables_of: &[Vec<usize>],
    bot: usize,
    (from, to): (usize, usize),
) -> Option<Vec<usize>> {
    let mut reached: BTreeMap<usize, Option<(usize, usize)>> = BTreeMap::from([(bot, None)]);
    let mut queue = VecDeque::from([bot]);
    while let Some(next) = queue.pop_front() {
        for number in &tables_of[next] {
            let table = &tables[*number];
            let other = usize::from(table[to]);
            if usize::from(table[from]) != next || reached.contains_key(&other) {
                continue;
            }
            reached.insert(other, Some((next, *number)));
            let mut after = times[other];
            after[from] += 1;
            after[to] -= 1;
            if excess(&after) > excess(&times[other]) {
                queue.push_back(other);
                continue;
            }
            let mut chain = Vec::new();
            let mut end = other;
            while let Some((before, number)) = reached[&end] {
                chain.push(number);
                end = before;
            }
            return Some(chain);
        }
    }
    None
}

fn count(times: &mut [[u32; SEATS]], table: Table, change: impl Fn(u32) -> u32) {
    for (seat, bot) in table.into_iter().enumerate() {
        let times = &mut times[usize::from(bot)][seat];
        *times = change(*times);
    }
}

/// The 24 orders of a table.
fn orders() -> Vec<[usize; SEATS]> {
    let all = (0..SEATS.pow(4)).map(|number| [1, 4, 16, 64].map(|place| number / place % SEATS));
    all.filter(|order| (0..SEATS).all(|place| order.contains(&place))).collect()
}
