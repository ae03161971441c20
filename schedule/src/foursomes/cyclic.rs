//! Tables for many bots and a number of matches at which pairs cannot all meet equally often.
//!
//! The bots stand in a circle in random order. A base table is turned round the whole circle, which
//! gives as many tables as there are bots. Each bot then has each seat once, and how often two bots
//! meet depends only on their distance. So only the distances, half as many as bots, must occur
//! equally often, and only the base tables are kept.
//!
//! The T tables that do not make a whole turn go round the circle too: the bots in seat 1 stand side
//! by side, then those in seat 2, and so on. They take 4T places in a row, so no bot has two matches
//! more than another.

use core::ops::RangeInclusive;

use arbiter_games::Dice;

use super::design::Seating;
use super::meeting_counts::PAIRS;
use super::{SEATS, Table};
use crate::Bot;

/// The number of bots that are tried for a seat; the best one is taken.
const CANDIDATES: usize = 30;
/// The number of changes that are tried, for each table and in all.
const TRIES_PER_TABLE: usize = 50_000;
const MAX_TRIES: usize = 4_000_000;
/// At first one in this many changes for the worse is kept, later ever fewer.
const WORSE_AT_FIRST: u32 = 300;
/// The cost of a change for the worse that may be kept: one more distance occurs too often.
const WORSE: i32 = 2;
/// The number of placements that are tried for the tables of the partial turn.
const PARTIAL_TRIES: usize = 200;

/// The tables, turn by turn.
#[derive(Debug)]
pub(super) struct Cyclic {
    /// The bots as they stand in the circle.
    circle: Vec<Bot>,
    /// Tables that are turned, as places in the circle.
    turned: Vec<[usize; SEATS]>,
    /// Tables of the partial turn, which are not turned.
    partial: Vec<[usize; SEATS]>,
    next: usize,
}

impl Cyclic {
    /// `count` tables for `bots` bots.
    pub(super) fn new(bots: usize, count: usize, dice: &mut Dice) -> Self {
        let mut circle: Vec<_> = (0..=Bot::MAX).take(bots).collect();
        dice.shuffle(&mut circle);
        let turns = count / bots;
        let mut distances = Distances::new(bots);
        let partial = place_partial_turn(count % bots, &mut distances, dice);
        let mut turned: Vec<_> = (0..turns).map(|_| distances.table(dice)).collect();
        distances.improve(&mut turned, dice);
        Self { circle, turned, partial, next: 0 }
    }

    /// Whether the meetings of every pair are within bounds: O(n log n), since pairs at the same
    /// distance meet equally often at the turned tables.
    pub(super) fn is_within(&self, bounds: &RangeInclusive<u32>) -> bool {
        let bots = self.circle.len();
        let mut distances = Distances::new(bots);
        for table in &self.turned {
            for (one, other) in PAIRS {
                distances.add(distances.between(table[one], table[other]));
            }
        }
        // The pairs that meet at other tables, by their distances.
        let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
        for table in &self.partial {
            let pair = |(one, other): (usize, usize)| {
                let one = table[one];
                let other = table[other];
                (distances.between(one, other), one.min(other), one.max(other))
            };
            pairs.extend(PAIRS.map(pair));
        }
        pairs.sort_unstable();
        if pairs.first().is_some_and(|(distance, ..)| *distance == 0) {
            // A bot would meet itself.
            return false;
        }
        let mut pairs = pairs.chunk_by(|one, other| one == other).peekable();
        (1..distances.met.len()).all(|distance| {
            let turned = u32::from(distances.met[distance]);
            let mut without = bots / usize::from(distances.step(distance));
            let mut fewest = u32::MAX;
            let mut most = 0;
            while let Some(pair) = pairs.next_if(|pair| pair[0].0 == distance) {
                let times = u32::try_from(pair.len()).expect("a pair meets at few of them");
                (fewest, most) = (fewest.min(times), most.max(times));
                without -= 1;
            }
            let fewest = if without > 0 { 0 } else { fewest };
            bounds.contains(&(turned + fewest)) && bounds.contains(&(turned + most))
        })
    }

    /// All tables at once.
    pub(super) fn collect(mut self) -> Vec<Table> {
        let mut tables = Vec::new();
        while self.batch(&mut tables).is_some() {}
        tables
    }

    /// Appends the next tables, O(n) of them; `None` at the end.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        let number = self.next;
        self.next += 1;
        let bots = self.circle.len();
        let at = |place: usize| self.circle[place % bots];
        if let Some(table) = self.turned.get(number) {
            tables.extend((0..bots).map(|by| table.map(|place| at(place + by))));
            return Some(Seating::Even);
        }
        let partial = core::mem::take(&mut self.partial);
        tables.extend(partial.iter().map(|table| table.map(at)));
        (!partial.is_empty()).then_some(Seating::Loose)
    }
}

/// How often two bots at each distance meet.
#[derive(Debug)]
struct Distances {
    bots: usize,
    /// At the distance of the index; 0 is not used.
    met: Vec<u16>,
    /// Whether tables of the partial turn let some pairs at this distance meet once more.
    partial: Vec<bool>,
}

impl Distances {
    fn new(bots: usize) -> Self {
        let kinds = bots / 2 + 1;
        Self { bots, met: vec![0; kinds], partial: vec![false; kinds] }
    }

    fn between(&self, one: usize, other: usize) -> usize {
        let apart = one.abs_diff(other) % self.bots;
        apart.min(self.bots - apart)
    }

    /// How often two bots at this distance meet when a table with such a pair is turned: 2 if they
    /// stand opposite each other, else 1.
    fn step(&self, distance: usize) -> u16 {
        if 2 * distance == self.bots { 2 } else { 1 }
    }

    /// The cost if this distance occurs once more than `met` times: the increase of the sum of
    /// squares over all pairs, divided by the number of bots. Where some pairs meet once more anyway,
    /// it is counted as if half of them did.
    fn difference(&self, distance: usize, met: u16) -> i32 {
        let is_costly = self.step(distance) == 2 || self.partial[distance];
        2 * i32::from(met) + if is_costly { 2 } else { 1 }
    }

    fn add(&mut self, distance: usize) -> i32 {
        let raised = self.difference(distance, self.met[distance]);
        self.met[distance] += self.step(distance);
        raised
    }

    fn remove(&mut self, distance: usize) -> i32 {
        self.met[distance] -= self.step(distance);
        self.difference(distance, self.met[distance])
    }

    /// The cost if the bot at `place` joined those seated.
    fn cost(&self, place: usize, seated: &[usize]) -> i32 {
        let costs = seated.iter().map(|other| {
            let distance = self.between(place, *other);
            self.difference(distance, self.met[distance])
        });
        costs.sum()
    }

    /// A new base table, good but not perfect.
    fn table(&mut self, dice: &mut Dice) -> [usize; SEATS] {
        let mut seated: Vec<usize> = vec![dice.index(self.bots)];
        while seated.len() < SEATS {
            let drawn = (0..CANDIDATES).map(|_| dice.index(self.bots));
            let free = drawn.filter(|place| !seated.contains(place));
            let Some(place) = free.min_by_key(|place| self.cost(*place, &seated)) else { continue };
            for other in &seated {
                self.add(self.between(place, *other));
            }
            seated.push(place);
        }
        seated.try_into().expect("four are seated")
    }

    /// Lowers the sum of costs by replacing one bot of a table at a time.
    fn improve(&mut self, tables: &mut [[usize; SEATS]], dice: &mut Dice) {
        if tables.is_empty() {
            return;
        }
        let mut excess = self.excess();
        let tries = MAX_TRIES.min(tables.len() * TRIES_PER_TABLE);
        for done in 0..tries {
            if excess <= 0 {
                break;
            }
            let table = &mut tables[dice.index(tables.len())];
            let seat = dice.index(SEATS);
            let place = dice.index(self.bots);
            if table.contains(&place) {
                continue;
            }
            let others = [1, 2, 3].map(|by| table[(seat + by) % SEATS]);
            let change = self.replace(table[seat], place, others);
            let rarity = WORSE_AT_FIRST << (10 * done / tries);
            if change <= 0 || change <= WORSE && dice.below(rarity) == 0 {
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
        let distances = 1..self.met.len();
        let mut sum = 0;
        let mut steps = Vec::new();
        for distance in distances.clone() {
            let step = self.step(distance);
            let costs = (0..self.met[distance]).step_by(step.into());
            sum += costs.map(|met| i64::from(self.difference(distance, met))).sum::<i64>();
            steps.push(usize::from(self.met[distance] / step));
        }
        // The lower bound is the sum of the cheapest steps.
        let mut left: usize = steps.into_iter().sum();
        for met in 0.. {
            let mut costs: Vec<_> = distances
                .clone()
                .filter(|distance| met % self.step(*distance) == 0)
                .map(|distance| i64::from(self.difference(distance, met)))
                .collect();
            costs.sort_unstable();
            sum -= costs.iter().take(left).sum::<i64>();
            if left <= costs.len() {
                break;
            }
            left -= costs.len();
        }
        sum
    }
}

/// The tables of the partial turn. Their distances count as met, so that the turned tables avoid
/// them.
fn place_partial_turn(
    count: usize,
    distances: &mut Distances,
    dice: &mut Dice,
) -> Vec<[usize; SEATS]> {
    if count == 0 {
        return Vec::new();
    }
    let bots = distances.bots;
    let seated = |shifts: [usize; SEATS], table: usize| {
        let mut places = [0; SEATS];
        for (seat, place) in places.iter_mut().enumerate() {
            *place = (seat * count + (table + shifts[seat]) % count) % bots;
        }
        places
    };
    let tables = |shifts| -> Vec<_> { (0..count).map(|table| seated(shifts, table)).collect() };
    let drawn = (0..PARTIAL_TRIES).map(|_| tables([(); SEATS].map(|()| dice.index(count))));
    let best = drawn.min_by_key(|tables| faults(tables, distances));
    let best = best.expect("some ways are tried");
    for distance in distances_of(&best, distances).into_iter().flatten() {
        distances.partial[distance] = true;
    }
    best
}

/// For every two seats: the distances that occur between them.
fn distances_of(tables: &[[usize; SEATS]], distances: &Distances) -> [Vec<usize>; 6] {
    PAIRS.map(|(one, other)| {
        let mut found = Vec::new();
        for table in tables {
            let distance = distances.between(table[one], table[other]);
            if !found.contains(&distance) {
                found.push(distance);
            }
        }
        found
    })
}

/// How bad a placement of the partial turn is: no bot may meet itself, no pair should meet twice.
fn faults(tables: &[[usize; SEATS]], distances: &Distances) -> (usize, usize) {
    let mut found = distances_of(tables, distances).concat();
    let count = found.len();
    found.sort_unstable();
    found.dedup();
    let opposite = found.iter().filter(|distance| distances.step(**distance) == 2).count();
    (found.iter().filter(|distance| **distance == 0).count(), count - found.len() + opposite)
}
