//! Boards: walls, the starting squares of units, and the number of rounds.
//!
//! The text of a board has the arguments of `set_game`: columns, rows, rounds, strength, and the
//! rows, separated by any white space. Lines that start with `;` are comments.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::gtp::{plain_number, quote};
use crate::match_state::Seat;
use crate::value::ParamsError;

/// The possible numbers of columns and rows.
const SIDE: RangeInclusive<u32> = 1..=100;
/// The possible strengths of units.
const STRENGTH: RangeInclusive<u32> = 1..=1_000_000;
/// The possible numbers of rounds.
pub(super) const ROUNDS: RangeInclusive<u32> = 1..=1_000_000;

/// The name and text of each shipped board: the official eight, then the document's example.
const SHIPPED: [(&str, &str); 9] = [
    ("pole", include_str!("boards/pole.bit")),
    ("korytarze", include_str!("boards/korytarze.bit")),
    ("labirynt", include_str!("boards/labirynt.bit")),
    ("drobnica", include_str!("boards/drobnica.bit")),
    ("kolosy", include_str!("boards/kolosy.bit")),
    ("twierdze", include_str!("boards/twierdze.bit")),
    ("maraton", include_str!("boards/maraton.bit")),
    ("rumowisko", include_str!("boards/rumowisko.bit")),
    ("przyklad", include_str!("boards/przyklad.bit")),
];

/// The boards that come with Arbiter, by name, with their texts: the eight of official
/// tournaments, then `przyklad`, the document's example.
pub fn shipped_boards() -> impl ExactSizeIterator<Item = (&'static str, &'static str)> {
    SHIPPED.into_iter()
}

/// The boards of official tournaments, by name, with their texts.
pub fn official_boards() -> impl ExactSizeIterator<Item = (&'static str, &'static str)> {
    shipped_boards().take(8)
}

/// A square of a board; (0, 0) is the first character of the first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Square {
    /// The column, from 0.
    pub x: u8,
    /// The row, from 0.
    pub y: u8,
}

/// A division, identified by its letter. Divisions are ordered as they move: A, a, B, b, C, c, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Division(u8);

impl Division {
    /// The number of possible divisions: one for each letter.
    pub const COUNT: usize = 52;

    /// All divisions, in the order in which they move.
    pub fn all() -> impl ExactSizeIterator<Item = Self> {
        (0..52).map(Self)
    }

    /// The division of a letter, if it is one of the English alphabet.
    pub fn from_letter(letter: char) -> Option<Self> {
        let byte = u8::try_from(letter).ok().filter(u8::is_ascii_alphabetic)?;
        Some(Self(2 * (byte.to_ascii_lowercase() - b'a') + u8::from(byte.is_ascii_lowercase())))
    }

    /// The letter on the board.
    pub fn letter(self) -> char {
        let first = if self.0 % 2 == 1 { b'a' } else { b'A' };
        char::from(first + self.0 / 2)
    }

    /// The seat of the division: capital letters belong to seat 1, small letters to seat 2.
    pub fn seat(self) -> Seat {
        Seat::from_index(usize::from(self.0 % 2))
    }

    /// The position of this division in the order of moving, from 0.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.letter().fmt(f)
    }
}

/// The content of a square before the first move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// `#`: no unit can ever stand here.
    Blocked,
    /// `.`: an empty square.
    Free,
    /// A letter: a unit of this division.
    Unit(Division),
}

impl Ground {
    fn from_char(character: char) -> Option<Self> {
        match character {
            '#' => Some(Self::Blocked),
            '.' => Some(Self::Free),
            letter => Division::from_letter(letter).map(Self::Unit),
        }
    }

    fn to_char(self) -> char {
        match self {
            Self::Blocked => '#',
            Self::Free => '.',
            Self::Unit(division) => division.letter(),
        }
    }
}

/// A board with the number of rounds and the strength of units: the arguments of `set_game`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    columns: u8,
    rounds: u32,
    strength: u32,
    /// The squares, row by row.
    ground: Vec<Ground>,
}

impl Board {
    /// The number of columns.
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ground.len() / self.columns()
    }

    /// The maximum number of rounds of a game.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The initial strength of every unit.
    pub fn strength(&self) -> u32 {
        self.strength
    }

    /// The same board with another number of rounds.
    #[must_use]
    pub fn with_rounds(self, rounds: Rounds) -> Self {
        Self { rounds: rounds.0, ..self }
    }

    /// Whether the square is on the board.
    pub fn contains(&self, square: Square) -> bool {
        usize::from(square.x) < self.columns() && usize::from(square.y) < self.rows()
    }

    /// The content of each square, row by row.
    pub fn ground(&self) -> &[Ground] {
        &self.ground
    }

    /// The arguments of `set_game`, separated by single spaces.
    pub fn text(&self) -> String {
        let columns = self.columns();
        let rows = self.rows();
        let mut text = format!("{columns} {rows} {} {}", self.rounds, self.strength);
        for row in self.ground.chunks(columns) {
            text.push(' ');
            text.extend(row.iter().map(|ground| ground.to_char()));
        }
        text
    }

    /// Parses the text of a board.
    fn parse(text: &str) -> Result<Self, ParamsError> {
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        let mut words = lines.flat_map(str::split_ascii_whitespace);
        let columns = number("columns", words.next(), &SIDE)?;
        let rows = number("rows", words.next(), &SIDE)? as usize;
        let rounds = number("rounds", words.next(), &ROUNDS)?;
        let strength = number("strength", words.next(), &STRENGTH)?;
        let mut ground = Vec::new();
        for row in 0..rows {
            let word = words.next().ok_or_else(|| {
                ParamsError::new(format_args!(
                    "row {row} of the board is missing: it should have {rows} rows, counted from 0"
                ))
            })?;
            read_row(row, word, columns as usize, &mut ground)?;
        }
        if let Some(word) = words.next() {
            return Err(ParamsError::new(format_args!(
                "{} follows row {}, which should be the last row of the board",
                quote(word),
                rows - 1
            )));
        }
        let columns = u8::try_from(columns).expect("SIDE fits into a byte");
        Ok(Self { columns, rounds, strength, ground })
    }
}

/// Parses one of the four numbers before the rows.
fn number(
    name: &str,
    word: Option<&str>,
    allowed: &RangeInclusive<u32>,
) -> Result<u32, ParamsError> {
    let word = word.ok_or_else(|| {
        ParamsError::new(format_args!(
            "the board's number of {name} is missing: columns, rows, rounds and strength come \
             first; or write the name of a board, as in pole"
        ))
    })?;
    let number = plain_number(word).and_then(|number| u32::try_from(number).ok());
    number.filter(|number| allowed.contains(number)).ok_or_else(|| {
        ParamsError::new(format_args!(
            "the board's number of {name} is {}: {} to {} are allowed",
            quote(word),
            allowed.start(),
            allowed.end()
        ))
    })
}

/// Parses one row and appends it to `ground`.
fn read_row(
    row: usize,
    word: &str,
    columns: usize,
    ground: &mut Vec<Ground>,
) -> Result<(), ParamsError> {
    let squares = word.chars().count();
    if squares != columns {
        return Err(ParamsError::new(format_args!(
            "row {row} of the board has {squares} squares instead of {columns}"
        )));
    }
    for (column, character) in word.chars().enumerate() {
        ground.push(Ground::from_char(character).ok_or_else(|| {
            ParamsError::new(format_args!(
                "row {row} of the board has {character:?} in column {column}: use # . A-Z a-z"
            ))
        })?);
    }
    Ok(())
}

impl FromStr for Board {
    type Err = ParamsError;

    /// Parses the name of a shipped board, or the text of any board.
    fn from_str(text: &str) -> Result<Self, ParamsError> {
        if let Some((_, shipped)) = shipped_boards().find(|(name, _)| *name == text) {
            return Self::parse(shipped);
        }
        let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
        if is_word && plain_number(text).is_none() {
            return Err(ParamsError::new(format_args!(
                "there is no board {}; the boards are {}, as in pole",
                quote(text),
                SHIPPED.map(|(name, _)| name).join(", ")
            )));
        }
        Self::parse(text)
    }
}

impl fmt::Display for Board {
    /// The shortest text for [`Board::from_str`]: the name of a shipped board, or the text of the
    /// board.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shipped = shipped_boards().find(|(_, text)| Self::parse(text).as_ref() == Ok(self));
        match shipped {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&self.text()),
        }
    }
}

/// A maximum number of rounds, which replaces the maximum of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds(pub(super) u32);
