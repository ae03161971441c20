//! The state of the board, and the effect of an order on it.
//!
//! This module has only the rules of movement, without rounds, players and clocks. A unit's move
//! reads nine squares and does not allocate, so that authors of bots can simulate millions of
//! moves.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::board::{Board, Division, Ground, Square};
use super::order::Order;
use crate::match_state::Seat;

/// The present content of a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Blocked,
    Free,
    Unit { division: Division, strength: u32 },
}

/// The units of a player on the board. They are ordered as at the end of a game: by the number of
/// units, then by strength.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Forces {
    /// The number of units.
    pub units: u32,
    /// The sum of their strengths.
    pub strength: u64,
}

/// What a unit did by an order, if it did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    /// The square on which the unit stood.
    pub(super) from: Square,
    /// The square to which it moved, or which it attacked.
    pub(super) to: Square,
    pub(super) kind: DeedKind,
}

/// The kind of a [`Deed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeedKind {
    /// It moved to a free square.
    Moved,
    /// It attacked a unit, which stays, and stays itself.
    Struck,
    /// It attacked a unit, which this removed, and moved to its square.
    Captured,
}

/// A battle: a board whose units move and fight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Battle {
    columns: usize,
    rows: usize,
    /// The squares, row by row.
    cells: Vec<Cell>,
    /// The squares of the units of each division, in no particular order.
    divisions: Vec<Vec<Square>>,
    /// The forces of each player, by the index of the seat.
    forces: [Forces; 2],
}

impl Battle {
    /// The battle before its first move.
    pub fn new(board: &Board) -> Self {
        let columns = board.columns();
        let rows = board.rows();
        let cells = Vec::with_capacity(columns * rows);
        let divisions = vec![Vec::new(); Division::COUNT];
        let forces = [Forces::default(); 2];
        let mut battle = Self { columns, rows, cells, divisions, forces };
        let squares = range(0, rows).flat_map(|y| range(0, columns).map(move |x| Square { x, y }));
        for (square, ground) in squares.zip(board.ground()) {
            let cell = match *ground {
                Ground::Blocked => Cell::Blocked,
                Ground::Free => Cell::Free,
                Ground::Unit(division) => battle.add_unit(division, board.strength(), square),
            };
            battle.cells.push(cell);
        }
        battle
    }

    fn add_unit(&mut self, division: Division, strength: u32, square: Square) -> Cell {
        self.divisions[division.index()].push(square);
        let forces = &mut self.forces[division.seat().index()];
        forces.units += 1;
        forces.strength += u64::from(strength);
        Cell::Unit { division, strength }
    }

    /// The remaining forces of a player.
    pub fn forces(&self, seat: Seat) -> Forces {
        self.forces[seat.index()]
    }

    /// Whether a player has no unit left.
    pub fn is_decided(&self) -> bool {
        self.forces.iter().any(|forces| forces.units == 0)
    }

    /// The squares of the units of a division, in no particular order.
    pub fn units(&self, division: Division) -> &[Square] {
        &self.divisions[division.index()]
    }

    /// The strength of the unit on a square of the board, or 0 if the square has no unit.
    pub fn strength(&self, square: Square) -> u32 {
        match self.cells[self.index(square)] {
            Cell::Unit { strength, .. } => strength,
            Cell::Blocked | Cell::Free => 0,
        }
    }

    /// The division and the strength of the unit on a square of the board; `None` if the square has
    /// no unit.
    pub fn unit(&self, square: Square) -> Option<(Division, u32)> {
        match self.cells[self.index(square)] {
            Cell::Unit { division, strength } => Some((division, strength)),
            Cell::Blocked | Cell::Free => None,
        }
    }

    /// Carries out an order: sorts the units of the division once, nearest first, and moves them in
    /// that order ("Ogólny schemat"). Stops when a player has no unit.
    pub fn carry_out(&mut self, division: Division, order: Order) {
        self.carry_out_watched(division, order, |_| ());
    }

    /// Carries out an order as [`Self::carry_out`] does, and reports what each unit did.
    pub(super) fn carry_out_watched(
        &mut self,
        division: Division,
        order: Order,
        mut watch: impl FnMut(Deed),
    ) {
        let mut units = mem::take(&mut self.divisions[division.index()]);
        units.sort_unstable_by_key(|square| order.distance(*square));
        for square in &mut units {
            if self.is_decided() {
                break;
            }
            *square = self.advance(*square, division.seat(), order, &mut watch);
        }
        self.divisions[division.index()] = units;
    }

    /// Moves the unit on `from`, or lets it attack. Returns its square afterwards ("Przemieszczenie
    /// oddziału").
    fn advance(
        &mut self,
        from: Square,
        seat: Seat,
        order: Order,
        watch: &mut impl FnMut(Deed),
    ) -> Square {
        let to = self.destination(from, seat, order);
        if to == from {
            return from;
        }
        let mut kind = DeedKind::Moved;
        if let Cell::Unit { division, strength } = self.cells[self.index(to)] {
            if !self.strike(to, division, strength) {
                watch(Deed { from, to, kind: DeedKind::Struck });
                return from;
            }
            kind = DeedKind::Captured;
        }
        watch(Deed { from, to, kind });
        let from = self.index(from);
        let destination = self.index(to);
        self.cells[destination] = mem::replace(&mut self.cells[from], Cell::Free);
        to
    }

    /// Takes one point of strength from the unit on `square`. Returns whether this removes the unit
    /// ("Atak").
    fn strike(&mut self, square: Square, division: Division, strength: u32) -> bool {
        let forces = &mut self.forces[division.seat().index()];
        forces.strength -= 1;
        if strength > 1 {
            let index = self.index(square);
            self.cells[index] = Cell::Unit { division, strength: strength - 1 };
            return false;
        }
        forces.units -= 1;
        let units = &mut self.divisions[division.index()];
        let position = units.iter().position(|unit| *unit == square);
        units.swap_remove(position.expect("a unit on the board is listed in its division"));
        true
    }

    /// The destination of the unit on `from`: the nearest square by the order. The candidates are
    /// its square and the neighbours, without blocked squares and other units of the same player.
    fn destination(&self, from: Square, seat: Seat, order: Order) -> Square {
        // If attack is preferred, the flag at the front sorts every enemy before every other
        // square.
        let mut min_key = (order.attack, order.distance(from));
        let mut destination = from;
        for y in neighbours(from.y, self.rows) {
            for x in neighbours(from.x, self.columns) {
                let square = Square { x, y };
                let is_enemy = match self.cells[self.index(square)] {
                    Cell::Blocked => continue,
                    Cell::Unit { division, .. } if division.seat() == seat => continue,
                    Cell::Unit { .. } => true,
                    Cell::Free => false,
                };
                let key = (order.attack && !is_enemy, order.distance(square));
                if key < min_key {
                    (min_key, destination) = (key, square);
                }
            }
        }
        destination
    }

    fn index(&self, square: Square) -> usize {
        usize::from(square.y) * self.columns + usize::from(square.x)
    }
}

/// The coordinates at most one step from `middle`. `side` is the number of coordinates of the
/// board.
fn neighbours(middle: u8, side: usize) -> impl Iterator<Item = u8> {
    range(middle.saturating_sub(1), side.min(usize::from(middle) + 2))
}

/// The coordinates from `first` up to `end`, without `end`.
fn range(first: u8, end: usize) -> impl Iterator<Item = u8> + Clone {
    first..u8::try_from(end).expect("a board's sides fit into a byte")
}

impl fmt::Display for Battle {
    /// The rows as in `set_game`, each on a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.cells.chunks(self.columns) {
            for cell in row {
                match cell {
                    Cell::Blocked => f.write_str("#")?,
                    Cell::Free => f.write_str(".")?,
                    Cell::Unit { division, .. } => division.fmt(f)?,
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}
