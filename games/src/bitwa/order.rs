//! Orders of bots: the six numbers of a move, and the distances by which units move.

use alloc::format;
use core::fmt;

use super::board::{Board, Square};
use crate::gtp::{plain_number, quote};
use crate::match_state::Illegal;

/// One of the two directions along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Towards smaller coordinates.
    Minus,
    /// Towards larger coordinates.
    Plus,
}

impl Sign {
    /// The sign as a step of one square.
    pub fn step(self) -> i32 {
        match self {
            Self::Minus => -1,
            Self::Plus => 1,
        }
    }
}

/// An order to a division: `A xd yd dx dy p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Order {
    /// A: whether a unit next to an enemy only attacks.
    pub attack: bool,
    /// (xd, yd): the target.
    pub target: Square,
    /// dx: the side of the target with the auxiliary point Px.
    pub dx: Sign,
    /// dy: the side of the target with the auxiliary point Py.
    pub dy: Sign,
    /// p: whether Px is the first auxiliary point and Py the second one, or the reverse.
    pub px_first: bool,
}

impl Order {
    /// Parses the words of a reply to `gen_move`.
    ///
    /// # Errors
    /// If the words are not six numbers within their limits ("Uwagi").
    pub(crate) fn parse(words: &[&str], board: &Board) -> Result<Self, Illegal> {
        let &[attack, xd, yd, dx, dy, px_first] = words else {
            let count = words.len();
            return Err(Illegal(format!("a move is six numbers, A xd yd dx dy p, not {count}")));
        };
        Ok(Self {
            attack: flag("A", attack)?,
            target: target(number("xd", xd)?, number("yd", yd)?, board)?,
            dx: sign("dx", dx)?,
            dy: sign("dy", dy)?,
            px_first: flag("p", px_first)?,
        })
    }

    /// The squared Euclidean distances of a square from the target, from the first and from the
    /// second auxiliary point. They are compared from the left. No two squares have equal
    /// distances.
    pub fn distance(self, square: Square) -> [i32; 3] {
        let x = i32::from(square.x) - i32::from(self.target.x);
        let y = i32::from(square.y) - i32::from(self.target.y);
        let distance = |dx: i32, dy: i32| (x - dx) * (x - dx) + (y - dy) * (y - dy);
        let target = distance(0, 0);
        let px = distance(self.dx.step(), 0);
        let py = distance(0, self.dy.step());
        if self.px_first { [target, px, py] } else { [target, py, px] }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attack = u8::from(self.attack);
        let px_first = u8::from(self.px_first);
        let Square { x, y } = self.target;
        write!(f, "{attack} {x} {y} {} {} {px_first}", self.dx.step(), self.dy.step())
    }
}

fn number(name: &str, word: &str) -> Result<i64, Illegal> {
    let error = || Illegal(format!("{name} must be a plain whole number, not {}", quote(word)));
    plain_number(word).ok_or_else(error)
}

fn flag(name: &str, word: &str) -> Result<bool, Illegal> {
    match number(name, word)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Illegal(format!("{name} must be 0 or 1, not {other}"))),
    }
}

fn sign(name: &str, word: &str) -> Result<Sign, Illegal> {
    match number(name, word)? {
        -1 => Ok(Sign::Minus),
        1 => Ok(Sign::Plus),
        other => Err(Illegal(format!("{name} must be -1 or 1, not {other}"))),
    }
}

fn target(x: i64, y: i64, board: &Board) -> Result<Square, Illegal> {
    let square = match (u8::try_from(x), u8::try_from(y)) {
        (Ok(x), Ok(y)) => Some(Square { x, y }).filter(|square| board.contains(*square)),
        _ => None,
    };
    square.ok_or_else(|| {
        let columns = board.columns();
        let rows = board.rows();
        Illegal(format!("the target ({x}, {y}) is off the board of {columns} x {rows} squares"))
    })
}
