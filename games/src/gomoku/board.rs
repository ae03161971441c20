//! The board: squares, stones and rows.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use thiserror::Error;

/// The length of the board's side, in squares.
pub const SIDE: u8 = 15;
/// The number of squares.
pub const SQUARES: usize = SIDE as usize * SIDE as usize;
/// The number of stones in a winning row.
pub const ROW: usize = 5;
/// The number of characters of a stone besides its square, including the comma.
const STONE_WIDTH: usize = "(,\"B\"),".len();
/// The directions of rows, without their opposites.
const DIRECTIONS: [(i8, i8); 4] = [(1, 0), (0, 1), (1, 1), (1, -1)];

/// The colour of a stone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Colour {
    /// The colour that begins the game phase.
    Black,
    /// The other colour.
    White,
}

impl Colour {
    /// The opponent's colour.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Black => Self::White,
            Self::White => Self::Black,
        }
    }
}

/// The colour's letter in the protocol, without quotes.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Black => "B",
            Self::White => "W",
        })
    }
}

crate::string_enum! {
    /// The rule for rows of more than five stones of one colour.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Overline {
        /// Such a row wins like a row of five.
        #[default]
        Wins = "wins",
        /// Only a row of exactly five wins.
        Ignored = "ignored",
    }
    FromStr, Err = OverlineError
}

/// The error for a text that is not a rule for overlines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("overline cannot be `{0}`: rows of more than five are `wins` or `ignored`, as in wins")]
pub struct OverlineError(String);

/// A square of the board. Squares are ordered by (X,Y), as the protocol sorts stones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Square {
    x: u8,
    y: u8,
}

impl Square {
    /// The square (x,y), each counted from 0; `None` outside the board.
    pub fn new(x: u8, y: u8) -> Option<Self> {
        (x < SIDE && y < SIDE).then_some(Self { x, y })
    }

    /// Every square, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..SIDE).flat_map(|x| (0..SIDE).map(move |y| Self { x, y }))
    }

    /// The first coordinate, from 0.
    pub fn x(self) -> u8 {
        self.x
    }

    /// The second coordinate, from 0.
    pub fn y(self) -> u8 {
        self.y
    }

    /// The position of this square in the order of all squares, from 0.
    pub fn index(self) -> usize {
        usize::from(self.x) * usize::from(SIDE) + usize::from(self.y)
    }

    /// The number of characters of the square in the protocol's syntax.
    fn width(self) -> usize {
        let digits = |number: u8| if number < 10 { 1 } else { 2 };
        "(,)".len() + digits(self.x) + digits(self.y)
    }

    /// The square next to this one in a direction; `None` outside the board.
    fn next(self, (dx, dy): (i8, i8)) -> Option<Self> {
        Self::new(self.x.checked_add_signed(dx)?, self.y.checked_add_signed(dy)?)
    }
}

/// The square in the protocol's syntax, `(7,8)`.
impl fmt::Display for Square {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{})", self.x, self.y)
    }
}

/// The error for a square that already has a stone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is occupied")]
pub struct Occupied(pub Square);

/// The stones on the board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    /// The stone on each square, by [`Square::index`].
    stones: [Option<Colour>; SQUARES],
    count: usize,
    /// The stones in the protocol's syntax. Every prompt contains this text, so each new stone
    /// updates it.
    text: String,
}

impl Default for Board {
    fn default() -> Self {
        Self { stones: [None; SQUARES], count: 0, text: "[]".to_string() }
    }
}

impl Board {
    /// The stone on a square.
    pub fn get(&self, square: Square) -> Option<Colour> {
        self.stones[square.index()]
    }

    /// Places a stone on an empty square.
    pub fn place(&mut self, square: Square, colour: Colour) -> Result<(), Occupied> {
        let stone = &mut self.stones[square.index()];
        if stone.is_some() {
            return Err(Occupied(square));
        }
        *stone = Some(colour);
        self.count += 1;
        self.write(square, colour);
        Ok(())
    }

    /// Inserts a new stone into the text, in the order of squares.
    fn write(&mut self, square: Square, colour: Colour) {
        let preceding: usize = Square::all()
            .take(square.index())
            .filter(|square| self.get(*square).is_some())
            .map(|square| square.width() + STONE_WIDTH)
            .sum();
        let stone = format!("({square},\"{colour}\")");
        let position = 1 + preceding;
        if position < self.text.len() - 1 {
            self.text.insert_str(position, &format!("{stone},"));
        } else if preceding == 0 {
            self.text.insert_str(position, &stone);
        } else {
            self.text.insert_str(position - 1, &format!(",{stone}"));
        }
    }

    /// The stones in the protocol's syntax, `[((0,0),"B"),((0,1),"W")]`.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of stones.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether no square is empty.
    pub fn is_full(&self) -> bool {
        self.count == SQUARES
    }

    /// All stones, sorted by their squares.
    pub fn stones(&self) -> impl Iterator<Item = (Square, Colour)> {
        Square::all().filter_map(|square| Some((square, self.get(square)?)))
    }

    /// Whether the stone on `square` is in a winning row: unbroken, of one colour, and horizontal,
    /// vertical or diagonal. False if the square is empty.
    pub fn wins(&self, square: Square, overline: Overline) -> bool {
        self.row(square, overline).is_some()
    }

    /// The ends of a winning row with the stone on `square`. The search covers at most five stones
    /// on each side.
    pub fn row(&self, square: Square, overline: Overline) -> Option<(Square, Square)> {
        let colour = self.get(square)?;
        DIRECTIONS.into_iter().find_map(|(dx, dy)| {
            let forward = self.run_length(square, (dx, dy), colour);
            let backward = self.run_length(square, (-dx, -dy), colour);
            let length = 1 + forward + backward;
            let wins = match overline {
                Overline::Wins => length >= ROW,
                Overline::Ignored => length == ROW,
            };
            let end = |direction, steps| {
                let squares =
                    core::iter::successors(Some(square), |square: &Square| square.next(direction));
                squares.take(steps + 1).last()
            };
            if wins { end((-dx, -dy), backward).zip(end((dx, dy), forward)) } else { None }
        })
    }

    /// The number of consecutive stones of `colour`, beginning with the neighbour of `square` in
    /// this direction. It is at most [`ROW`], since longer runs make no difference.
    fn run_length(&self, square: Square, direction: (i8, i8), colour: Colour) -> usize {
        let next = |square: &Square| square.next(direction);
        core::iter::successors(Some(square), next)
            .skip(1)
            .take(ROW)
            .take_while(|square| self.get(*square) == Some(colour))
            .count()
    }
}
