//! The board in play: what an order does to it.
//!
//! The rules of movement and nothing else: neither rounds nor players nor clocks. A unit's move
//! looks at nine squares and allocates nothing, so that bots' authors and benchmarks can play
//! millions of them.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::board::{Board, Division, Ground, Square};
use super::order::Order;
use crate::match_state::Seat;

/// What a square holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Blocked,
    Free,
    Unit { division: Division, strength: u32 },
}

/// What a player has on the board. Compared as at the end of a game: more units win, then more
/// strength.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Forces {
    /// How many units.
    pub units: u32,
    /// The sum of their strengths.
    pub strength: u64,
}

/// A battle: a board whose units move and fight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Battle {
    columns: usize,
    rows: usize,
    /// Row by row.
    cells: Vec<Cell>,
    /// Where the units of each division stand, in no particular order.
    divisions: Vec<Vec<Square>>,
    /// By the index of the seat.
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
                Ground::Unit(division) => battle.enlist(division, board.strength(), square),
            };
            battle.cells.push(cell);
        }
        battle
    }

    fn enlist(&mut self, division: Division, strength: u32, square: Square) -> Cell {
        self.divisions[division.index()].push(square);
        let forces = &mut self.forces[division.seat().index()];
        forces.units += 1;
        forces.strength += u64::from(strength);
        Cell::Unit { division, strength }
    }

    /// What a player has left.
    pub fn forces(&self, seat: Seat) -> Forces {
        self.forces[seat.index()]
    }

    /// Whether a player has no unit left.
    pub fn is_decided(&self) -> bool {
        self.forces.iter().any(|forces| forces.units == 0)
    }

    /// Where the units of a division stand, in no particular order.
    pub fn units(&self, division: Division) -> &[Square] {
        &self.divisions[division.index()]
    }

    /// The strength of the unit on a square of the board, or 0 if none stands there.
    pub fn strength(&self, square: Square) -> u32 {
        match self.cells[self.index(square)] {
            Cell::Unit { strength, .. } => strength,
            Cell::Blocked | Cell::Free => 0,
        }
    }

    /// The unit on a square of the board, if one stands there: its division and its strength.
    pub fn unit(&self, square: Square) -> Option<(Division, u32)> {
        match self.cells[self.index(square)] {
            Cell::Unit { division, strength } => Some((division, strength)),
            Cell::Blocked | Cell::Free => None,
        }
    }

    /// Carries out an order: sorts the units of the division once, nearest first, and moves them
    /// in that order ("Ogólny schemat"). It stops when a player has no unit left.
    pub fn carry_out(&mut self, division: Division, order: Order) {
        let mut units = mem::take(&mut self.divisions[division.index()]);
        units.sort_unstable_by_key(|square| order.distance(*square));
        for square in &mut units {
            if self.is_decided() {
                break;
            }
            *square = self.advance(*square, division.seat(), order);
        }
        self.divisions[division.index()] = units;
    }

    /// Moves the unit on `from`, or lets it attack, and gives the square where it ends
    /// ("Przemieszczenie oddziału").
    fn advance(&mut self, from: Square, seat: Seat, order: Order) -> Square {
        let to = self.choice(from, seat, order);
        if to == from {
            return from;
        }
        if let Cell::Unit { division, strength } = self.cells[self.index(to)]
            && !self.strike(to, division, strength)
        {
            return from;
        }
        let from = self.index(from);
        let destination = self.index(to);
        self.cells[destination] = mem::replace(&mut self.cells[from], Cell::Free);
        to
    }

    /// Takes one point of strength from the unit on `square`; whether that removes it ("Atak").
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

    /// The square to which the unit on `from` wants to go: among its own and its neighbours, if
    /// neither blocked nor held by a unit of the same player, the nearest by the order.
    fn choice(&self, from: Square, seat: Seat, order: Order) -> Square {
        // If attack is preferred, the flag in front puts every enemy before every other square.
        let mut least = (order.attack, order.distance(from));
        let mut choice = from;
        for y in near(from.y, self.rows) {
            for x in near(from.x, self.columns) {
                let square = Square { x, y };
                let is_enemy = match self.cells[self.index(square)] {
                    Cell::Blocked => continue,
                    Cell::Unit { division, .. } if division.seat() == seat => continue,
                    Cell::Unit { .. } => true,
                    Cell::Free => false,
                };
                let key = (order.attack && !is_enemy, order.distance(square));
                if key < least {
                    (least, choice) = (key, square);
                }
            }
        }
        choice
    }

    fn index(&self, square: Square) -> usize {
        usize::from(square.y) * self.columns + usize::from(square.x)
    }
}

/// The coordinates at most one step from `middle`, on a board with `side` of them.
fn near(middle: u8, side: usize) -> impl Iterator<Item = u8> {
    range(middle.saturating_sub(1), side.min(usize::from(middle) + 2))
}

/// The coordinates from `first` to before `end`.
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
