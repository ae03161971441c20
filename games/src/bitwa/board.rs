//! Boards: where the walls are, where the units start, how long a game lasts.
//!
//! As text a board is the arguments of `set_game`: columns, rows, rounds, strength, and the rows,
//! with any white space between them. Lines that start with `;` are comments.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::gtp::{plain_number, quote};
use crate::match_state::Seat;
use crate::parameter::{self, Accepts};

/// How many columns or rows a board may have.
const SIDE: RangeInclusive<u32> = 1..=100;
/// How strong the units of a board may be.
const STRENGTH: RangeInclusive<u32> = 1..=1_000_000;
/// How many rounds a game may last.
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

/// A place on a board; (0, 0) is the first character of the first row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Square {
    /// The column, from 0.
    pub x: u8,
    /// The row, from 0.
    pub y: u8,
}

/// A division, known by its letter. Divisions are ordered as they move: A, a, B, b, C, c, …
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Division(u8);

impl Division {
    /// How many divisions there can be: as many as letters.
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

    /// Whose division it is: capitals are seat 1's, small letters seat 2's.
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

/// What a square holds before the first move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// `#`: nobody can ever stand here.
    Blocked,
    /// `.`: nobody stands here yet.
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

/// A board and its game: what `set_game` announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Board {
    columns: u8,
    rounds: u32,
    strength: u32,
    /// Row by row.
    ground: Vec<Ground>,
}

/// Why a text is not a board.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoardError {
    /// A single word that names no board.
    #[error(
        "there is no board {word}; the boards are {list}, as in pole",
        word = quote(.0),
        list = names()
    )]
    Unknown(String),
    /// The text ends before a number.
    #[error(
        "the board's number of {0} is missing: columns, rows, rounds and strength come first; or \
        write the name of a board, as in pole"
    )]
    Missing(&'static str),
    /// A number that is none, or out of its limits.
    #[error("the board's number of {name} is {}: {least} to {most} are allowed", quote(.word))]
    Number {
        /// What the number counts.
        name: &'static str,
        /// What stands in its place.
        word: String,
        /// The least allowed.
        least: u32,
        /// The most allowed.
        most: u32,
    },
    /// Fewer rows than announced.
    #[error("row {row} of the board is missing: it should have {rows} rows, counted from 0")]
    RowMissing {
        /// The first row that is missing, from 0.
        row: usize,
        /// How many rows were announced.
        rows: usize,
    },
    /// A row with too many or too few squares.
    #[error("row {row} of the board has {found} squares instead of {columns}")]
    RowLength {
        /// The row, from 0.
        row: usize,
        /// How many squares it has.
        found: usize,
        /// How many it should have.
        columns: usize,
    },
    /// A character that means nothing.
    #[error("row {row} of the board has {character:?} in column {column}: use # . A-Z a-z")]
    Character {
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The character.
        character: char,
    },
    /// More rows than announced.
    #[error("{} follows row {row}, which should be the last row of the board", quote(.word))]
    TooMany {
        /// What follows.
        word: String,
        /// The last row announced, from 0.
        row: usize,
    },
}

/// The names of the shipped boards, for a message.
fn names() -> String {
    SHIPPED.map(|(name, _)| name).join(", ")
}

impl Board {
    /// How many columns the board has.
    pub fn columns(&self) -> usize {
        usize::from(self.columns)
    }

    /// How many rows the board has.
    pub fn rows(&self) -> usize {
        self.ground.len() / self.columns()
    }

    /// After how many rounds a game ends at the latest.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// The strength of every unit at first.
    pub fn strength(&self) -> u32 {
        self.strength
    }

    /// The same board with another number of rounds.
    #[must_use]
    pub fn with_rounds(self, rounds: Rounds) -> Self {
        Self { rounds: rounds.0, ..self }
    }

    /// Whether there is such a square.
    pub fn contains(&self, square: Square) -> bool {
        usize::from(square.x) < self.columns() && usize::from(square.y) < self.rows()
    }

    /// What each square holds, row by row.
    pub fn ground(&self) -> &[Ground] {
        &self.ground
    }

    /// The board as `set_game` announces it, with single spaces.
    pub fn text(&self) -> String {
        let (columns, rows) = (self.columns(), self.rows());
        let mut text = format!("{columns} {rows} {} {}", self.rounds, self.strength);
        for row in self.ground.chunks(columns) {
            text.push(' ');
            text.extend(row.iter().map(|ground| ground.to_char()));
        }
        text
    }

    /// Reads a board's text, be it a name or not.
    fn parse(text: &str) -> Result<Self, BoardError> {
        let lines = text.lines().filter(|line| !line.starts_with(';'));
        let mut words = lines.flat_map(str::split_ascii_whitespace);
        let columns = number("columns", words.next(), &SIDE)?;
        let rows = number("rows", words.next(), &SIDE)? as usize;
        let rounds = number("rounds", words.next(), &ROUNDS)?;
        let strength = number("strength", words.next(), &STRENGTH)?;
        let mut ground = Vec::new();
        for row in 0..rows {
            let word = words.next().ok_or(BoardError::RowMissing { row, rows })?;
            read_row(row, word, columns as usize, &mut ground)?;
        }
        if let Some(word) = words.next() {
            return Err(BoardError::TooMany { word: word.to_string(), row: rows - 1 });
        }
        let columns = u8::try_from(columns).expect("SIDE fits into a byte");
        Ok(Self { columns, rounds, strength, ground })
    }
}

/// Reads one of the four numbers in front of the rows.
fn number(
    name: &'static str,
    word: Option<&str>,
    allowed: &RangeInclusive<u32>,
) -> Result<u32, BoardError> {
    let word = word.ok_or(BoardError::Missing(name))?;
    let number = plain_number(word).and_then(|number| u32::try_from(number).ok());
    number.filter(|number| allowed.contains(number)).ok_or_else(|| BoardError::Number {
        name,
        word: word.to_string(),
        least: *allowed.start(),
        most: *allowed.end(),
    })
}

/// Reads one row and appends it to `ground`.
fn read_row(
    row: usize,
    word: &str,
    columns: usize,
    ground: &mut Vec<Ground>,
) -> Result<(), BoardError> {
    let found = word.chars().count();
    if found != columns {
        return Err(BoardError::RowLength { row, found, columns });
    }
    for (column, character) in word.chars().enumerate() {
        let error = BoardError::Character { row, column, character };
        ground.push(Ground::from_char(character).ok_or(error)?);
    }
    Ok(())
}

impl FromStr for Board {
    type Err = BoardError;

    /// Reads the name of a shipped board or the text of any board.
    fn from_str(text: &str) -> Result<Self, BoardError> {
        if let Some((_, shipped)) = shipped_boards().find(|(name, _)| *name == text) {
            return Self::parse(shipped);
        }
        let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
        if is_word && plain_number(text).is_none() {
            return Err(BoardError::Unknown(text.to_string()));
        }
        Self::parse(text)
    }
}

impl fmt::Display for Board {
    /// The shortest text that reads back: the name of the board if it is a shipped one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shipped = shipped_boards().find(|(_, text)| Self::parse(text).as_ref() == Ok(self));
        match shipped {
            Some((name, _)) => f.write_str(name),
            None => f.write_str(&self.text()),
        }
    }
}

impl<'de> Deserialize<'de> for Board {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = "the name of a board or its text, as in pole";
        parameter::text(deserializer, Accepts { key: "board", values })
    }
}

/// How many rounds a game lasts at most, in place of what its board says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds(u32);

/// A number of rounds that no game has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "rounds cannot be {0}: {least} to {most} are allowed, as in 100",
    least = ROUNDS.start(),
    most = ROUNDS.end()
)]
pub struct RoundsError(pub i64);

impl TryFrom<i64> for Rounds {
    type Error = RoundsError;

    fn try_from(rounds: i64) -> Result<Self, RoundsError> {
        let allowed = u32::try_from(rounds).ok().filter(|rounds| ROUNDS.contains(rounds));
        allowed.map(Self).ok_or(RoundsError(rounds))
    }
}

impl<'de> Deserialize<'de> for Rounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = "a whole number from 1 to 1000000, as in 100";
        let number = parameter::whole_number(deserializer, Accepts { key: "rounds", values })?;
        number.try_into().map_err(D::Error::custom)
    }
}

impl From<Rounds> for u32 {
    fn from(rounds: Rounds) -> Self {
        rounds.0
    }
}
