//! Base blocks: the tables from which a cyclic design is developed.
//!
//! A base block is a table of different residues modulo the number of bots, n. It is *developed*
//! into n tables: 0, 1, 2 and so on up to n - 1 are added to all its residues. In these tables each
//! bot has each seat exactly once. Two bots whose numbers differ by d, in one of the two directions
//! around the circle, meet once for each pair of residues in the block with this distance. If d is
//! n/2 they meet twice, because both directions are the same.
//!
//! So only the distances within the base blocks decide how often pairs meet. The search makes them
//! as equally frequent as it can: it adds each residue where the sum of the squares of all pairs'
//! meetings grows least, and then moves one residue at a time.

use core::ops::RangeInclusive;

use arbiter_games::{Dice, Seed};

use crate::Bot;

/// The number of times that the search tries to move each residue.
const PASSES: usize = 8;
/// The maximum number of new searches for better base blocks.
const MAX_ATTEMPTS: usize = 40;
/// The approximate number of distances that one pass of a search may compute, unless the minimum
/// number of places needs more. Another search begins only if all together compute no more than
/// this, so large plans have one search. With 1000 legs at tables of 16 seats, the most, that
/// search computes 2²⁷ distances in about a second.
const EFFORT: usize = 1 << 22;
/// The minimum number of places that are compared for a residue, or all if there are fewer.
const MIN_CANDIDATES: usize = 32;

/// The base blocks of a cyclic design, one for each leg.
#[derive(Debug)]
pub(super) struct BaseBlocks {
    /// The residues, seat 1 of the first block first.
    residues: Vec<Bot>,
    seats: usize,
    distances: Distances,
}

impl BaseBlocks {
    /// Base blocks for tables of `seats` seats, of at least as many `bots`.
    pub(super) fn find(bots: usize, seats: usize, legs: usize, seed: Seed) -> Self {
        let most_candidates = (EFFORT / (legs * seats * seats)).max(MIN_CANDIDATES);
        let candidates = bots.min(most_candidates);
        let work = 2 * PASSES * legs * seats * seats * candidates;
        let least = least_cost(bots, (legs * seats * (seats - 1) / 2) as u64);
        let mut best: Option<(u64, Self)> = None;
        for number in 0..(EFFORT / work).clamp(1, MAX_ATTEMPTS) {
            let mut search = Search {
                blocks: Self {
                    residues: Vec::with_capacity(legs * seats),
                    seats,
                    distances: Distances::new(bots),
                },
                candidates,
                dice: seed.dice(number as u64),
            };
            search.run(legs, least);
            let cost = search.blocks.distances.cost();
            if best.as_ref().is_none_or(|(lowest, _)| cost < *lowest) {
                best = Some((cost, search.blocks));
            }
            if cost == least {
                break;
            }
        }
        best.expect("there is at least one attempt").1
    }

    /// The base block of a leg, from 0: its residues, seat 1 first.
    pub(super) fn of_leg(&self, leg: usize) -> &[Bot] {
        &self.residues[leg * self.seats..][..self.seats]
    }

    /// The minimum and maximum number of meetings of a pair.
    pub(super) fn meetings(&self) -> RangeInclusive<u32> {
        let distances = 1..self.distances.counts.len();
        let meetings = distances.map(|distance| self.distances.meetings(distance));
        let ends =
            meetings.fold((u32::MAX, 0), |(min, max), count| (count.min(min), count.max(max)));
        ends.0..=ends.1
    }
}

/// The number of pairs of residues with each distance on the circle, from 0 to half of it.
#[derive(Debug)]
struct Distances {
    bots: usize,
    counts: Vec<u32>,
}

impl Distances {
    fn new(bots: usize) -> Self {
        Self { bots, counts: vec![0; bots / 2 + 1] }
    }

    fn of(&self, first: Bot, second: Bot) -> usize {
        let difference = usize::from(first.abs_diff(second));
        difference.min(self.bots - difference)
    }

    /// How often a pair at this distance meets for each pair of residues with it.
    fn weight(&self, distance: usize) -> u32 {
        1 + u32::from(2 * distance == self.bots)
    }

    /// The number of meetings of a pair at this distance.
    fn meetings(&self, distance: usize) -> u32 {
        self.weight(distance) * self.counts[distance]
    }

    /// The sum of the squares of all pairs' meetings, divided by the number of bots.
    fn cost(&self) -> u64 {
        let squares = self.counts.iter().enumerate().map(|(distance, count)| {
            u64::from(self.weight(distance)) * u64::from(*count) * u64::from(*count)
        });
        squares.sum()
    }

    /// Adds the distances between a residue and the others. Returns the growth of the cost.
    fn add(&mut self, residue: Bot, others: &[Bot]) -> u64 {
        let mut growth = 0;
        for other in others {
            let distance = self.of(residue, *other);
            growth += u64::from(self.weight(distance)) * u64::from(2 * self.counts[distance] + 1);
            self.counts[distance] += 1;
        }
        growth
    }

    /// Removes the distances between a residue and the others.
    fn remove(&mut self, residue: Bot, others: &[Bot]) {
        for other in others {
            let distance = self.of(residue, *other);
            self.counts[distance] -= 1;
        }
    }
}

/// The lowest possible cost of this many distances between residues modulo `bots`.
fn least_cost(bots: usize, distances: u64) -> u64 {
    let single = (bots as u64 - 1) / 2;
    let even_cost = |count: u64| {
        let low = count / single;
        let larger = count % single;
        (single - larger) * low * low + larger * (low + 1) * (low + 1)
    };
    if !bots.is_multiple_of(2) {
        return even_cost(distances);
    }
    if single == 0 {
        return 2 * distances * distances;
    }
    // The distance n/2 counts double.
    let costs = (0..=distances).map(|half| 2 * half * half + even_cost(distances - half));
    costs.min().expect("the list has at least one number")
}

/// A search for base blocks.
struct Search {
    blocks: BaseBlocks,
    /// The number of places that are compared for each residue.
    candidates: usize,
    dice: Dice,
}

impl Search {
    fn run(&mut self, legs: usize, least: u64) {
        let seats = self.blocks.seats;
        for _ in 0..legs {
            let mut block = Vec::with_capacity(seats);
            for _ in 0..seats {
                block.push(self.best(&block));
            }
            self.blocks.residues.append(&mut block);
        }
        for _ in 0..PASSES {
            if self.blocks.distances.cost() == least {
                break;
            }
            for leg in 0..legs {
                self.improve(leg);
            }
        }
        // Chance decides who sits next to whom.
        for block in self.blocks.residues.chunks_exact_mut(seats) {
            self.dice.shuffle(block);
        }
    }

    /// Moves each residue of a base block to the best place.
    fn improve(&mut self, leg: usize) {
        let seats = self.blocks.seats;
        let mut block = self.blocks.of_leg(leg).to_vec();
        for _ in 0..seats {
            let residue = block.remove(0);
            self.blocks.distances.remove(residue, &block);
            let residue = self.best(&block);
            block.push(residue);
        }
        self.blocks.residues[leg * seats..][..seats].copy_from_slice(&block);
    }

    /// The place for another residue of this block where the cost grows least. Its distances are
    /// added.
    fn best(&mut self, block: &[Bot]) -> Bot {
        let bots = self.blocks.distances.bots;
        let start = self.dice.index(bots);
        let mut best: Option<(u64, Bot)> = None;
        for offset in 0..bots {
            if offset >= self.candidates && best.is_some() {
                break;
            }
            let residue = Bot::try_from((start + offset) % bots).expect("bots are counted");
            if block.contains(&residue) {
                continue;
            }
            let distances = &mut self.blocks.distances;
            let growth = distances.add(residue, block);
            distances.remove(residue, block);
            if best.is_none_or(|(lowest, _)| growth < lowest) {
                best = Some((growth, residue));
            }
        }
        let (_, residue) = best.expect("there are at least as many bots as seats");
        self.blocks.distances.add(residue, block);
        residue
    }
}
