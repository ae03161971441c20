//! Tables for many bots and a number of matches at which pairs cannot all meet equally often.
//!
//! The bots are arranged in a circle in random order. A base table is rotated to every place of the
//! circle, which gives one table for each bot. Each bot then has each seat once, and the number of
//! meetings of two bots depends only on their distance. So the search only balances the distances,
//! and there are half as many distances as bots. Memory holds only the base tables.
//!
//! The remaining T tables do not make a whole rotation. Their seats take consecutive places of the
//! circle: T places for seat 1, then T places for seat 2, and so on. They cover 4T consecutive
//! places, so the numbers of matches of two bots differ by at most one.

use core::ops::RangeInclusive;

use arbiter_games::Dice;

use super::design::Seating;
use super::meeting_counts::PAIRS;
use super::{SEATS, Table};
use crate::Bot;

/// The number of random candidates for a seat of a new base table.
const CANDIDATES: usize = 30;
/// The number of changes to try for each table.
const TRIES_PER_TABLE: usize = 50_000;
/// The maximum number of changes to try in total.
const MAX_TRIES: usize = 4_000_000;
/// The initial probability of accepting a worse change is 1 / this number. It falls with time.
const INITIAL_RARITY: u32 = 300;
/// The cost of a worse change that may be accepted: one more distance occurs too often.
const ACCEPTABLE_COST: i32 = 2;
/// The number of random placements for the tables of the partial rotation.
const PARTIAL_TRIES: usize = 200;

/// The tables, rotation by rotation.
#[derive(Debug)]
pub(super) struct Cyclic {
    /// The bots in the order of the circle.
    circle: Vec<Bot>,
    /// The base tables, as places in the circle. Each one is rotated.
    base_tables: Vec<[usize; SEATS]>,
    /// The tables of the partial rotation, as places in the circle. They are not rotated.
    partial: Vec<[usize; SEATS]>,
    next_batch: usize,
}

impl Cyclic {
    /// `count` tables for `bots` bots.
    pub(super) fn new(bots: usize, count: usize, dice: &mut Dice) -> Self {
        let mut circle: Vec<_> = (0..=Bot::MAX).take(bots).collect();
        dice.shuffle(&mut circle);
        let rotations = count / bots;
        let mut distances = Distances::new(bots);
        let partial = place_partial_rotation(count % bots, &mut distances, dice);
        let mut base_tables: Vec<_> = (0..rotations).map(|_| distances.new_table(dice)).collect();
        distances.improve(&mut base_tables, dice);
        Self { circle, base_tables, partial, next_batch: 0 }
    }

    /// Whether the meetings of every pair are within bounds. It takes O(n log n) time, since pairs
    /// at the same distance meet equally often at the rotated tables.
    pub(super) fn is_within(&self, bounds: &RangeInclusive<u32>) -> bool {
        let bots = self.circle.len();
        let mut distances = Distances::new(bots);
        for table in &self.base_tables {
            for (first, second) in PAIRS {
                distances.add(distances.between(table[first], table[second]));
            }
        }
        // The pairs of the partial rotation, by distance.
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for table in &self.partial {
            let pair = |(first_seat, second_seat): (usize, usize)| {
                let first = table[first_seat];
                let second = table[second_seat];
                (distances.between(first, second), first.min(second), first.max(second))
            };
            pairs.extend(PAIRS.map(pair));
        }
        pairs.sort_unstable();
        if pairs.first().is_some_and(|(distance, ..)| *distance == 0) {
            // A bot would meet itself.
            return false;
        }
        let mut pairs = pairs.chunk_by(|left, right| left == right).peekable();
        (1..distances.counts.len()).all(|distance| {
            let rotated = u32::from(distances.counts[distance]);
            let mut other_pairs = bots / usize::from(distances.step(distance));
            let mut min = u32::MAX;
            let mut max = 0;
            while let Some(pair) = pairs.next_if(|pair| pair[0].0 == distance) {
                let times = u32::try_from(pair.len()).expect("a pair meets at few tables");
                (min, max) = (min.min(times), max.max(times));
                other_pairs -= 1;
            }
            let min = if other_pairs > 0 { 0 } else { min };
            bounds.contains(&(rotated + min)) && bounds.contains(&(rotated + max))
        })
    }

    /// All tables.
    pub(super) fn collect(mut self) -> Vec<Table> {
        let mut tables = Vec::new();
        while self.batch(&mut tables).is_some() {}
        tables
    }

    /// Appends the next O(n) tables. `None` at the end.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        let number = self.next_batch;
        self.next_batch += 1;
        let bots = self.circle.len();
        let bot_at = |place: usize| self.circle[place % bots];
        if let Some(table) = self.base_tables.get(number) {
            tables.extend((0..bots).map(|offset| table.map(|place| bot_at(place + offset))));
            return Some(Seating::Even);
        }
        let partial = core::mem::take(&mut self.partial);
        tables.extend(partial.iter().map(|table| table.map(bot_at)));
        (!partial.is_empty()).then_some(Seating::Loose)
    }
}

/// The number of meetings of two bots at each distance.
#[derive(Debug)]
struct Distances {
    bots: usize,
    /// The number of meetings at the distance of the index. Index 0 is not used.
    counts: Vec<u16>,
    /// Whether some pairs at the distance of the index meet at a table of the partial rotation.
    partial: Vec<bool>,
}

impl Distances {
    fn new(bots: usize) -> Self {
        let len = bots / 2 + 1;
        Self { bots, counts: vec![0; len], partial: vec![false; len] }
    }

    fn between(&self, first: usize, second: usize) -> usize {
        let distance = first.abs_diff(second) % self.bots;
        distance.min(self.bots - distance)
    }

    /// The number of meetings of two bots at this distance in a whole rotation of such a pair: 2 if
    /// the bots are opposite each other, otherwise 1.
    fn step(&self, distance: usize) -> u16 {
        if 2 * distance == self.bots { 2 } else { 1 }
    }

    /// The cost of one more occurrence of this distance after `count` meetings: the increase of the
    /// sum of squares over all pairs, divided by the number of bots. If some of these pairs meet in
    /// the partial rotation, the cost assumes that half of them do.
    fn added_cost(&self, distance: usize, count: u16) -> i32 {
        let is_costly = self.step(distance) == 2 || self.partial[distance];
        2 * i32::from(count) + if is_costly { 2 } else { 1 }
    }

    fn add(&mut self, distance: usize) -> i32 {
        let cost = self.added_cost(distance, self.counts[distance]);
        self.counts[distance] += self.step(distance);
        cost
    }

    fn remove(&mut self, distance: usize) -> i32 {
        self.counts[distance] -= self.step(distance);
        self.added_cost(distance, self.counts[distance])
    }

    /// The cost of adding the bot at `place` to a table with the bots at `seated`.
    fn cost(&self, place: usize, seated: &[usize]) -> i32 {
        let costs = seated.iter().map(|other| {
            let distance = self.between(place, *other);
            self.added_cost(distance, self.counts[distance])
        });
        costs.sum()
    }

    /// A new base table. Each seat gets the cheapest of some random places.
    fn new_table(&mut self, dice: &mut Dice) -> [usize; SEATS] {
        let mut seated: Vec<usize> = vec![dice.index(self.bots)];
        while seated.len() < SEATS {
            let candidates = (0..CANDIDATES).map(|_| dice.index(self.bots));
            let free = candidates.filter(|place| !seated.contains(place));
            let Some(place) = free.min_by_key(|place| self.cost(*place, &seated)) else { continue };
            for other in &seated {
                self.add(self.between(place, *other));
            }
            seated.push(place);
        }
        seated.try_into().expect("a table has four bots")
    }

    /// Lowers the sum of costs by simulated annealing. Each change replaces one bot of a table.
    fn improve(&mut self, tables: &mut [[usize; SEATS]], dice: &mut Dice) {
        if tables.is_empty() {
            return;
        }
        let mut excess = self.excess();
        let tries = MAX_TRIES.min(tables.len() * TRIES_PER_TABLE);
        for attempt in 0..tries {
            if excess <= 0 {
                break;
            }
            let table = &mut tables[dice.index(tables.len())];
            let seat = dice.index(SEATS);
            let place = dice.index(self.bots);
            if table.contains(&place) {
                continue;
            }
            let others = [1, 2, 3].map(|offset| table[(seat + offset) % SEATS]);
            let change = self.replace(table[seat], place, others);
            let rarity = INITIAL_RARITY << (10 * attempt / tries);
            if change <= 0 || change <= ACCEPTABLE_COST && dice.below(rarity) == 0 {
                table[seat] = place;
                excess += i64::from(change);
            } else {
                self.replace(place, table[seat], others);
            }
        }
    }

    fn replace(&mut self, old: usize, new: usize, others: [usize; SEATS - 1]) -> i32 {
        let mut change = 0;
        for other in others {
            change -= self.remove(self.between(old, other));
        }
        for other in others {
            change += self.add(self.between(new, other));
        }
        change
    }

    /// The difference between the sum of all costs and its lower bound.
    fn excess(&self) -> i64 {
        let distances = 1..self.counts.len();
        let mut sum = 0;
        let mut steps = Vec::new();
        for distance in distances.clone() {
            let step = self.step(distance);
            let costs = (0..self.counts[distance]).step_by(step.into());
            sum += costs.map(|count| i64::from(self.added_cost(distance, count))).sum::<i64>();
            steps.push(usize::from(self.counts[distance] / step));
        }
        // The lower bound is the sum of the cheapest steps.
        let mut remaining: usize = steps.into_iter().sum();
        for count in 0.. {
            let mut costs: Vec<_> = distances
                .clone()
                .filter(|distance| count % self.step(*distance) == 0)
                .map(|distance| i64::from(self.added_cost(distance, count)))
                .collect();
            costs.sort_unstable();
            sum -= costs.iter().take(remaining).sum::<i64>();
            if remaining <= costs.len() {
                break;
            }
            remaining -= costs.len();
        }
        sum
    }
}

/// Places the tables of the partial rotation. It marks their distances, so that the rotated tables
/// avoid them.
fn place_partial_rotation(
    count: usize,
    distances: &mut Distances,
    dice: &mut Dice,
) -> Vec<[usize; SEATS]> {
    if count == 0 {
        return Vec::new();
    }
    let bots = distances.bots;
    let table_places = |shifts: [usize; SEATS], table: usize| {
        let mut places = [0; SEATS];
        for (seat, place) in places.iter_mut().enumerate() {
            *place = (seat * count + (table + shifts[seat]) % count) % bots;
        }
        places
    };
    let tables =
        |shifts| -> Vec<_> { (0..count).map(|table| table_places(shifts, table)).collect() };
    let candidates = (0..PARTIAL_TRIES).map(|_| tables([(); SEATS].map(|()| dice.index(count))));
    let best = candidates.min_by_key(|tables| conflicts(tables, distances));
    let best = best.expect("there are candidates");
    for distance in distances_of(&best, distances).into_iter().flatten() {
        distances.partial[distance] = true;
    }
    best
}

/// For every pair of seats: the different distances between their bots.
fn distances_of(tables: &[[usize; SEATS]], distances: &Distances) -> [Vec<usize>; 6] {
    PAIRS.map(|(first, second)| {
        let mut unique = Vec::new();
        for table in tables {
            let distance = distances.between(table[first], table[second]);
            if !unique.contains(&distance) {
                unique.push(distance);
            }
        }
        unique
    })
}

/// The conflicts of a placement of the partial rotation: the number of bots that meet themselves,
/// and the number of distances at which pairs may meet twice.
fn conflicts(tables: &[[usize; SEATS]], distances: &Distances) -> (usize, usize) {
    let mut unique = distances_of(tables, distances).concat();
    let count = unique.len();
    unique.sort_unstable();
    unique.dedup();
    let opposite = unique.iter().filter(|distance| distances.step(**distance) == 2).count();
    (unique.iter().filter(|distance| **distance == 0).count(), count - unique.len() + opposite)
}
