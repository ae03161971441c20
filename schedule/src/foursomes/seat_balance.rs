//! Assigns seats at given tables. The numbers of times that a bot has each seat differ by at most
//! one.
//!
//! A *place* is one bot at one table. The algorithm splits the places into two halves. Each table
//! has two places in each half, and the numbers of a bot's places in the two halves differ by at
//! most one. It splits each half again in the same way. The four quarters are the seats.
//!
//! A split pairs the places of each table, and the places of each bot with at most one place left
//! over. A place is then in at most two pairs, so pairs form paths and even cycles. Along them,
//! places go alternately into the two halves, which separates all pairs (an Euler split; de Werra,
//! "Equitable colorations of graphs", 1971).

use core::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use super::meeting_counts::PAIRS;
use super::{SEATS, Table};

/// Marks the end of a path: there is no next place.
const NONE: u32 = u32::MAX;

/// Reorders the bots of each table.
///
/// # Panics
/// If there are 2³⁰ tables or more.
pub(super) fn balance(tables: &mut [Table], bots: usize) {
    let places =
        u32::try_from(tables.len() * SEATS).expect("there are fewer than 2³⁰ loose tables");
    // The pairs within each table: at first places 0 and 1, and 2 and 3.
    let mut table_pairs: Vec<u32> = (0..places).map(|place| place ^ 1).collect();
    let halves = split(tables, bots, &table_pairs, &vec![false; places as usize]);
    for (number, table) in halves.chunks_exact(SEATS).enumerate() {
        let first = number * SEATS;
        for half in [false, true] {
            let mut pair = (0..SEATS).filter(|seat| table[*seat] == half);
            let pair =
                [(); 2].map(|()| first + pair.next().expect("each half of a table has two places"));
            for (first, second) in [(0, 1), (1, 0)] {
                table_pairs[pair[first]] =
                    u32::try_from(pair[second]).expect("the number of places fits into 32 bits");
            }
        }
    }
    let quarters = split(tables, bots, &table_pairs, &halves);
    for (number, table) in tables.iter_mut().enumerate() {
        let bots = *table;
        for (seat, bot) in bots.into_iter().enumerate() {
            let place = number * SEATS + seat;
            table[2 * usize::from(halves[place]) + usize::from(quarters[place])] = bot;
        }
    }
}

/// Splits the places of each part into halves.
fn split(tables: &[Table], bots: usize, table_pairs: &[u32], parts: &[bool]) -> Vec<bool> {
    let bot_pairs = pair_by_bot(tables, bots, parts);
    let mut halves = vec![false; table_pairs.len()];
    let mut visited = vec![false; table_pairs.len()];
    let mut walk = |start: usize| {
        let mut place = start;
        while !visited[place] {
            let other = table_pairs[place] as usize;
            (visited[place], visited[other]) = (true, true);
            halves[other] = true;
            if bot_pairs[other] == NONE {
                break;
            }
            place = bot_pairs[other] as usize;
        }
    };
    (0..table_pairs.len()).filter(|place| bot_pairs[*place] == NONE).for_each(&mut walk);
    (0..table_pairs.len()).for_each(&mut walk);
    halves
}

/// For each place: the paired place of the same bot, or [`NONE`].
fn pair_by_bot(tables: &[Table], bots: usize, parts: &[bool]) -> Vec<u32> {
    let mut pairs = vec![NONE; parts.len()];
    let mut unpaired = vec![NONE; 2 * bots];
    for (place, bot) in (0..).zip(tables.iter().flatten()) {
        let unpaired = &mut unpaired[2 * usize::from(*bot) + usize::from(parts[place as usize])];
        if *unpaired == NONE {
            *unpaired = place;
        } else {
            pairs[place as usize] = *unpaired;
            pairs[*unpaired as usize] = place;
            *unpaired = NONE;
        }
    }
    pairs
}

/// The maximum number of passes over all tables.
const MAX_PASSES: usize = 8;

/// Reorders the bots of each table. `earlier[b][s]` is the number of times that bot b has seat s at
/// other tables. Each pass gives each table the best order for its four bots, until nothing
/// changes. The numbers of a bot's seats should differ by at most one, which is not always
/// possible.
pub(super) fn balance_with(tables: &mut [Table], earlier: &[[u32; SEATS]]) {
    let mut counts = earlier.to_vec();
    for table in tables.iter() {
        update(&mut counts, *table, |count| count + 1);
    }
    let orders = orders();
    for _ in 0..MAX_PASSES {
        let mut has_changed = false;
        for table in tables.iter_mut() {
            update(&mut counts, *table, |count| count - 1);
            let candidates = orders.iter().map(|order| order.map(|place| table[place]));
            let best = candidates.min_by_key(|candidate| {
                let costs = candidate.iter().enumerate().map(|(seat, bot)| {
                    let counts = &counts[usize::from(*bot)];
                    let min = counts.iter().min().expect("a table has seats");
                    (counts[seat] - min).pow(2)
                });
                (costs.sum::<u32>(), candidate != table)
            });
            let best = best.expect("a table has 24 orders");
            has_changed |= best != *table;
            *table = best;
            update(&mut counts, *table, |count| count + 1);
        }
        if !has_changed {
            break;
        }
    }
}

/// In an incremental plan: the maximum difference between the numbers of times that a bot has each
/// seat.
const MAX_SPREAD: u32 = 3;

/// Reorders tables until the seat counts of every bot differ by at most [`MAX_SPREAD`], or these
/// tables allow no improvement. `times` is the number of times that each bot has each seat, at
/// these and all other tables. No bot changes tables. If no bot exceeds the limit, nothing changes.
///
/// A bot that has one seat too often exchanges seats with another bot at one table. If the seats of
/// the other bot are then too uneven, it moves back at another table and exchanges seats with a
/// third bot, and so on. A breadth-first search finds the shortest such chain. Each chain lowers
/// the sum of all excesses, so the loop ends.
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
            update(times, *table, |count| count - 1);
            table.swap(from, to);
            update(times, *table, |count| count + 1);
        }
    }
}

/// The excess of a bot's seat differences over the limit, summed over all pairs of seats.
fn excess(times: &[u32; SEATS]) -> u32 {
    let pairs = PAIRS.into_iter().map(|(first, second)| times[first].abs_diff(times[second]));
    pairs.map(|difference| difference.saturating_sub(MAX_SPREAD)).sum()
}

/// The moves of a bot between seats that lower its excess, the most effective first.
fn moves(times: &[u32; SEATS]) -> Vec<(usize, usize)> {
    let pairs = PAIRS.into_iter().flat_map(|(first, second)| [(first, second), (second, first)]);
    let mut pairs: Vec<_> =
        pairs.filter(|(from, to)| times[*from] > times[*to] + MAX_SPREAD).collect();
    pairs.sort_by_key(|(from, to)| Reverse(times[*from] - times[*to]));
    pairs
}

/// A chain of tables at which the bots in two seats exchange them. `bot` moves from the seat `from`
/// to the seat `to`, the last bot of the chain moves the other way, and all other bots keep their
/// counts.
fn chain(
    tables: &[Table],
    times: &[[u32; SEATS]],
    tables_of: &[Vec<usize>],
    bot: usize,
    (from, to): (usize, usize),
) -> Option<Vec<usize>> {
    let mut reached: BTreeMap<usize, Option<(usize, usize)>> = BTreeMap::from([(bot, None)]);
    let mut queue = VecDeque::from([bot]);
    while let Some(current) = queue.pop_front() {
        for number in &tables_of[current] {
            let table = &tables[*number];
            let other = usize::from(table[to]);
            if usize::from(table[from]) != current || reached.contains_key(&other) {
                continue;
            }
            reached.insert(other, Some((current, *number)));
            let mut new_times = times[other];
            new_times[from] += 1;
            new_times[to] -= 1;
            if excess(&new_times) > excess(&times[other]) {
                queue.push_back(other);
                continue;
            }
            let mut chain = Vec::new();
            let mut end = other;
            while let Some((previous, number)) = reached[&end] {
                chain.push(number);
                end = previous;
            }
            return Some(chain);
        }
    }
    None
}

/// Changes the seat counts of the bots of a table.
fn update(times: &mut [[u32; SEATS]], table: Table, change: impl Fn(u32) -> u32) {
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
