//! Designs: tables at which every pair of bots meets exactly λ times, made one batch at a time.
//!
//! A design is a tree. An inner node joins groups of bots: every pair from different groups meets λ
//! times, and each group (with the single point, where there is one) is planned in the same way. The
//! leaves are small designs and progressions. Memory holds the stack of nodes that are still to be
//! visited, each with its bots: O(n) in all, since the groups of a node are disjoint.
//!
//! Batches are *even* or *loose*. The even batches together give each bot each seat equally often. The
//! loose ones, O(n log n) tables in all, do not; they get their seats afterwards.

use arbiter_games::{Dice, Seed};

use super::construction::{Construction, Groups, least_meetings};
use super::small_designs::SmallDesign;
use super::transversal::Ring;
use super::{SEATS, Table};
use crate::Bot;

/// The five foursomes of a block of five points, in each of which one is missing. Every pair of
/// points meets three times, once each as neighbours to one side, to the other, and as opposites.
const OF_FIVE: [[usize; SEATS]; 5] =
    [[0, 1, 3, 2], [1, 2, 4, 3], [2, 3, 0, 4], [3, 4, 1, 0], [4, 0, 2, 1]];
/// The three orders of a foursome that differ by more than turning and reversing.
const ORDERS: [[usize; SEATS]; 3] = [[0, 1, 2, 3], [1, 0, 2, 3], [0, 2, 1, 3]];
/// Four numbers modulo 15 whose differences are all that 5 does not divide, once each.
const MODULO_15: [usize; SEATS] = [0, 1, 3, 7];

/// Whether a batch of tables leaves the seats of its bots as even as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seating {
    /// With the other even batches it gives each bot each seat equally often.
    Even,
    /// It does not do so.
    Loose,
}

impl Seating {
    fn even_if(even: bool) -> Self {
        if even { Self::Even } else { Self::Loose }
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
    /// Bots of whom each pair is to meet `meetings` times.
    Plan { bots: Vec<Bot>, meetings: u32 },
    /// A generator and the number of its next batch.
    Generate { generator: Generator, bots: Vec<Bot>, next: usize },
}

#[derive(Debug)]
enum Generator {
    SmallDesign(&'static SmallDesign),
    /// A progression modulo this number: all bots, or all but one.
    Progression(usize),
    Groups(Joined),
    TripledGroups(Joined),
}

/// Groups of bots, joined by the blocks of a ring.
#[derive(Debug)]
struct Joined {
    groups: Groups,
    ring: Ring,
    /// How often all blocks are used; each time the bots of each group have another order.
    copies: usize,
    meetings: u32,
}

impl Design {
    /// The design in which each pair of `bots` bots meets `meetings` times (0 is allowed), with the
    /// bots in an order that `seed` determines.
    pub(super) fn new(bots: usize, meetings: u32, seed: Seed) -> Self {
        debug_assert!(meetings.is_multiple_of(least_meetings(bots)), "no such design exists");
        let all = (0..=Bot::MAX).take(bots).collect();
        let mut nodes = Vec::new();
        if meetings > 0 {
            nodes.push(Node::Plan { bots: all, meetings });
        }
        Self { nodes, dice: seed.dice(0) }
    }

    /// Appends the next tables, O(n) of them; `None` at the end.
    pub(super) fn batch(&mut self, tables: &mut Vec<Table>) -> Option<Seating> {
        loop {
            match self.nodes.pop()? {
                Node::Plan { bots, meetings } => self.plan(bots, meetings),
                Node::Generate { generator, bots, next } if next == generator.batches() => {
                    self.leave(&generator, &bots);
                }
                Node::Generate { mut generator, mut bots, next } => {
                    let seating = generator.batch(next, &mut bots, &mut self.dice, tables);
                    self.nodes.push(Node::Generate { generator, bots, next: next + 1 });
                    return Some(seating);
                }
            }
        }
    }

    /// Chooses a construction for `bots`, and defers all meetings beyond λ.
    fn plan(&mut self, mut bots: Vec<Bot>, meetings: u32) {
        let Some(construction) = Construction::find(bots.len()) else { return };
        let least = least_meetings(bots.len());
        if meetings > least {
            self.nodes.push(Node::Plan { bots: bots.clone(), meetings: meetings - least });
        }
        self.dice.shuffle(&mut bots);
        let joined = |groups: Groups, copies: u32| Joined {
            groups,
            ring: Ring::new(groups.m),
            copies: copies as usize,
            meetings: least,
        };
        let generator = match construction {
            Construction::SmallDesign(row) => Generator::SmallDesign(row),
            Construction::Progression => Generator::Progression(bots.len()),
            Construction::ProgressionAndOne => Generator::Progression(bots.len() - 1),
            // The foursomes of a block of five make a pair meet three times.
            Construction::Groups(groups) if groups.t > 0 => {
                Generator::Groups(joined(groups, least / 3))
            }
            Construction::Groups(groups) => Generator::Groups(joined(groups, least)),
            Construction::TripledGroups(groups) => Generator::TripledGroups(joined(groups, least)),
        };
        self.nodes.push(Node::Generate { generator, bots, next: 0 });
    }

    /// Pushes the groups that a finished generator leaves to be planned.
    fn leave(&mut self, generator: &Generator, bots: &[Bot]) {
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

/// The tables of one step `i` of a progression; a bot beyond the modulus joins those of step 1.
fn progression(modulus: usize, i: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
    let turned = |j: usize, by: usize| bots[(j + by) % modulus];
    match bots.get(modulus) {
        Some(one) if i == 1 => {
            for j in 0..modulus {
                tables.push([*one, turned(j, 0), turned(j, 1), turned(j, 3)]);
                tables.push([*one, turned(j, 0), turned(j, 1), turned(j, 2)]);
            }
            Seating::Loose
        }
        _ => {
            tables.extend((0..modulus).map(|j| [0, i, 3 * i, 2 * i].map(|by| turned(j, by))));
            Seating::Even
        }
    }
}

impl Joined {
    /// Puts the bots of each group into a new order when a copy begins.
    fn reorder(&self, number: usize, size: usize, bots: &mut [Bot], dice: &mut Dice) {
        let m = self.groups.m;
        if number > 0 && number.is_multiple_of(m) {
            let grouped = bots.len() - self.groups.e;
            bots[..grouped].chunks_mut(size * m).for_each(|group| dice.shuffle(group));
        }
    }

    /// The number `a` of a batch in its copy, and, if its blocks have four points, by how many
    /// seats they are turned: four batches in a row, turned by 0 to 3 seats, are even together,
    /// and those that make no four at the end are loose.
    fn place(&self, number: usize) -> (usize, Option<(usize, Seating)>) {
        let Groups { m, t, .. } = self.groups;
        let a = number % m;
        let turned = a
            .checked_sub(t)
            .map(|index| (index % SEATS, Seating::even_if(index < (m - t) / SEATS * SEATS)));
        (a, turned)
    }

    fn join(&self, number: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
        let Groups { m, t, .. } = self.groups;
        let (a, turned) = self.place(number);
        let Some((turn, seating)) = turned else {
            let mut five = [bots[SEATS * m + a]; 5];
            self.ring.blocks(a, |points| {
                five[..SEATS].copy_from_slice(&chosen(bots, points, m));
                tables.extend(OF_FIVE.map(|four| four.map(|point| five[point])));
            });
            return Seating::Even;
        };
        // Where there are blocks of five, each foursome is needed three times.
        let orders = if t > 0 { &ORDERS[..] } else { &ORDERS[..1] };
        let reversed = number / m % 2 == 1;
        self.ring.blocks(a, |points| {
            let four = chosen(bots, points, m);
            for order in orders {
                let mut table = order.map(|point| four[point]);
                if reversed {
                    table.reverse();
                }
                table.rotate_left(turn);
                tables.push(table);
            }
        });
        seating
    }

    /// Every point stands for three bots here, who are in one group. Blocks of four points become
    /// nine tables, those of five become fifteen; each joins any two bots of different points.
    fn join_tripled(&self, number: usize, bots: &[Bot], tables: &mut Vec<Table>) -> Seating {
        let m = self.groups.m;
        let (a, turned) = self.place(number);
        let Some((turn, seating)) = turned else {
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
                table.rotate_left(turn);
                tables.push(table);
            }
        });
        seating
    }
}

/// The bots at points of the first four groups, which have `m` bots each.
fn chosen(bots: &[Bot], mut points: [usize; SEATS], m: usize) -> Table {
    for (group, point) in points.iter_mut().enumerate() {
        *point += group * m;
    }
    points.map(|point| bots[point])
}
