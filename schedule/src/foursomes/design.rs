//! Designs: tables at which every pair of bots meets exactly λ times, made one batch at a time.
//!
//! A design is a tree. An inner node joins groups of bots: every pair from different groups meets λ
//! times, and each group (with the single point, if there is one) becomes another node. The leaves
//! are small designs and progressions. Memory holds a stack of unvisited nodes with their bots:
//! O(n) in total, since the groups of a node are disjoint.
//!
//! Batches are *even* or *loose*. The even batches together give each bot each seat equally often.
//! The loose batches do not. They have O(n log n) tables in total, and get their seats afterwards.

use arbiter_games::{Dice, Seed};

use super::construction::{Construction, Groups, least_meetings};
use super::small_designs::SmallDesign;
use super::transversal::Ring;
use super::{SEATS, Table};
use crate::Bot;

/// The five foursomes of a block of five points. Each one omits another point. Every pair of points
/// meets three times: as left neighbours, as right neighbours, and as opposites.
const OF_FIVE: [[usize; SEATS]; 5] =
    [[0, 1, 3, 2], [1, 2, 4, 3], [2, 3, 0, 4], [3, 4, 1, 0], [4, 0, 2, 1]];
/// The three orders of a foursome that differ by more than rotation and reversal.
const ORDERS: [[usize; SEATS]; 3] = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 3]];
/// Four numbers modulo 15. Each difference that is not a multiple of 5 occurs once between them.
const MODULO_15: [usize; SEATS] = [0, 1, 3, 7];

/// Whether the seats of a batch of tables are balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seating {
    /// All even batches together give each bot each seat equally often.
    Even,
    /// The seats are not balanced.
    Loose,
}

impl Seating {
    fn even_if(is_even: bool) -> Self {
        if is_even { Self::Even } else { Self::Loose }
    }
}

/// The tables of a design, batch by batch.
#[derive(Debug)]
pub(super) struct Design {
    nodes: Vec<Node>,
    dice: Dice,
}

#[derive(Debug)]
enum Node {
    /// Bots without tables so far. Each pair of them meets `meetings` times.
    Plan { bots: Vec<Bot>, meetings: u32 },
    /// A generator with its bots and the number of its next batch.
    Generate { generator: Generator, bots: Vec<Bot>, next: usize },
}

#[derive(Debug)]
enum Generator {
    SmallDesign(&'static SmallDesign),
    /// A progression modulo this number: the number of bots, or one less.
    Progression(usize),
    Groups(JoinedGroups),
    TripledGroups(JoinedGroups),
}

/// Groups of bots, joined by the blocks of a ring.
#[derive(Debug)]
struct JoinedGroups {
    groups: Groups,
    ring: Ring,
    /// The number of times that all blocks are used. Each time the bots of a group have another
    /// order.
    copies: usize,
    meetings: u32,
}

impl Design {
    /// The design in which each pair of `bots` bots meets `meetings` times (0 is allowed). `seed`
    /// determines the order of the bots.
    pub(super) fn new(bots: usize, meetings: u32, seed: Seed) -> Self {
        debug_assert!(meetings.is_multiple_of(least_meetings(bots)), "no such design exists");
        let all = (0..=Bot::MAX).take(bots).collect();
        let mut nodes = Vec::new();
        if meetings > 0 {
            nodes.push(Node::Plan { bots: all, meetings });
        }
        Self { nodes, dice: seed.dice(0) }
    }

    /// Appends the next O(n) tables. `None` at the end.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        loop {
            match self.nodes.pop()? {
                Node::Plan { bots, meetings } => self.plan(bots, meetings),
                Node::Generate { generator, bots, next } if next == generator.batches() => {
                    self.push_groups(&generator, &bots);
                }
                Node::Generate { mut generator, mut bots, next } => {
                    let seating = generator.batch(next, &mut bots, &mut self.dice, tables);
                    self.nodes.push(Node::Generate { generator, bots, next: next + 1 });
                    return Some(seating);
                }
            }
        }
    }

    /// Chooses a construction for `bots`. Pushes a node for the meetings beyond λ.
    fn plan(&mut self, mut bots: Vec<Bot>, meetings: u32) {
        let Some(construction) = Construction::find(bots.len()) else { return };
        let least = least_meetings(bots.len());
        if meetings > least {
            self.nodes.push(Node::Plan { bots: bots.clone(), meetings: meetings - least });
        }
        self.dice.shuffle(&mut bots);
        let join = |groups: Groups, copies: u32| JoinedGroups {
            groups,
            ring: Ring::new(groups.m),
            copies: copies as usize,
            meetings: least,
        };
        let generator = match construction {
            Construction::SmallDesign(row) => Generator::SmallDesign(row),
            Construction::Progression => Generator::Progression(bots.len()),
            Construction::ProgressionAndOne => Generator::Progression(bots.len() - 1),
            // At the foursomes of a block of five, each pair meets three times.
            Construction::Groups(groups) if groups.t > 0 => {
                Generator::Groups(join(groups, least / 3))
            }
            Construction::Groups(groups) => Generator::Groups(join(groups, least)),
            Construction::TripledGroups(groups) => Generator::TripledGroups(join(groups, least)),
        };
        self.nodes.push(Node::Generate { generator, bots, next: 0 });
    }

    /// Pushes the groups of a finished generator. The generator has joined only different groups.
    fn push_groups(&mut self, generator: &Generator, bots: &[Bot]) {
        let (joined, size) = match generator {
            Generator::SmallDesign(_) | Generator::Progression(_) => return,
            Generator::Groups(joined) => (joined, 1),
            Generator::TripledGroups(joined) => (joined, 3),
        };
        let (grouped, single) = bots.split_at(bots.len() - joined.groups.e);
        for group in grouped.chunks(size * joined.groups.m) {
            let bots = [group, single].concat();
            self.nodes.push(Node::Plan { bots, meetings: joined.meetings });
        }
    }
}

impl Generator {
    /// The number of batches.
    fn batches(&self) -> usize {
        match self {
            Self::SmallDesign(row) => row.len(),
            Self::Progression(modulus) => modulus / 2,
            Self::Groups(joined) | Self::TripledGroups(joined) => joined.copies * joined.groups.m,
        }
    }

    /// Makes the batch with a number from 0.
    fn batch(
        &mut self,
        number: usize,
        bots: &mut [Bot],
        dice: &mut Dice,
        tables: &mut Vec<Table>,
    ) -> Seating {
        match self {
            Self::SmallDesign(row) => Seating::even_if(row.develop(number, bots, tables)),
            Self::Progression(modulus) => progression(*modulus, number + 1, bots, tables),
            Self::Groups(joined) => {
                joined.reorder(number, 1, bots, dice);
                joined.join(number, bots, tables)
            }
            Self::TripledGroups(joined) => {
                joined.reorder(number, 3, bots, dice);
                joined.join_tripled(number, bots, tables)
            }
        }
    }
}

/// The tables of step `i` of a progression. A bot beyond the modulus joins the tables of step 1.
fn progression(modulus: usize, i: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
    let bot = |j: usize, offset: usize| bots[(j + offset) % modulus];
    match bots.get(modulus) {
        Some(extra) if i == 1 => {
            for j in 0..modulus {
                tables.push([*extra, bot(j, 0), bot(j, 1), bot(j, 3)]);
                tables.push([*extra, bot(j, 0), bot(j, 1), bot(j, 2)]);
            }
            Seating::Loose
        }
        _ => {
            tables.extend((0..modulus).map(|j| [0, i, 3 * i, 2 * i].map(|offset| bot(j, offset))));
            Seating::Even
        }
    }
}

impl JoinedGroups {
    /// Puts the bots of each group into a new order when a copy begins.
    fn reorder(&self, number: usize, size: usize, bots: &mut [Bot], dice: &mut Dice) {
        let m = self.groups.m;
        if number > 0 && number.is_multiple_of(m) {
            let grouped = bots.len() - self.groups.e;
            bots[..grouped].chunks_mut(size * m).for_each(|group| dice.shuffle(group));
        }
    }

    /// The number `a` of a batch in its copy. If its blocks have four points, also the rotation of
    /// their seats: four consecutive batches, rotated by 0 to 3 seats, are even together. The last
    /// batches are loose if there are fewer than four of them.
    fn batch_position(&self, number: usize) -> (usize, Option<(usize, Seating)>) {
        let Groups { m, t, .. } = self.groups;
        let a = number % m;
        let rotation = a
            .checked_sub(t)
            .map(|index| (index % SEATS, Seating::even_if(index < (m - t) / SEATS * SEATS)));
        (a, rotation)
    }

    fn join(&self, number: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
        let Groups { m, t, .. } = self.groups;
        let (a, rotation) = self.batch_position(number);
        let Some((offset, seating)) = rotation else {
            let mut five = [bots[SEATS * m + a]; 5];
            self.ring.blocks(a, |points| {
                five[..SEATS].copy_from_slice(&bots_at(bots, points, m));
                tables.extend(OF_FIVE.map(|four| four.map(|point| five[point])));
            });
            return Seating::Even;
        };
        // If there are blocks of five, each foursome is needed three times.
        let orders = if t > 0 { &ORDERS[..] } else { &ORDERS[..1] };
        let reversed = number / m % 2 == 1;
        self.ring.blocks(a, |points| {
            let four = bots_at(bots, points, m);
            for order in orders {
                let mut table = order.map(|point| four[point]);
                if reversed {
                    table.reverse();
                }
                table.rotate_left(offset);
                tables.push(table);
            }
        });
        seating
    }

    /// Every point stands for three bots of one group. A block of four points becomes nine tables,
    /// and a block of five points becomes fifteen tables. Every two bots of different points in the
    /// block meet at these tables.
    fn join_tripled(&self, number: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
        let m = self.groups.m;
        let (a, rotation) = self.batch_position(number);
        let Some((offset, seating)) = rotation else {
            self.ring.blocks(a, |points| {
                let mut five = [SEATS * m + a; 5];
                for (group, point) in points.into_iter().enumerate() {
                    five[group] = group * m + point;
                }
                tables.extend((0..15).map(|z| {
                    MODULO_15.map(|difference| {
                        let y = (z + difference) % 15;
                        bots[3 * five[y % 5] + y % 3]
                    })
                }));
            });
            return Seating::Even;
        };
        self.ring.blocks(a, |points| {
            for (x, y) in (0..9).map(|pair| (pair / 3, pair % 3)) {
                let thirds = [y, (x + y) % 3, (2 * x + y) % 3, x];
                let mut places = [0; SEATS];
                for (group, place) in places.iter_mut().enumerate() {
                    *place = 3 * (group * m + points[group]) + thirds[group];
                }
                let mut table = places.map(|place| bots[place]);
                table.rotate_left(offset);
                tables.push(table);
            }
        });
        seating
    }
}

/// The bots at points of the first four groups, which have `m` bots each.
fn bots_at(bots: &[Bot], mut points: [usize; SEATS], m: usize) -> Table {
    for (group, point) in points.iter_mut().enumerate() {
        *point += group * m;
    }
    points.map(|point| bots[point])
}
