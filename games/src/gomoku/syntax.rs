//! The syntax of replies: squares `(X,Y)` and colours `"B"`, `"W"`, in lists without separators.
//!
//! The parser ignores white space everywhere ("Format") and is strict otherwise. A colour may omit
//! both its quotes.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::board::{Colour, SIDE, Square};
use crate::match_state::Illegal;
use crate::quote::quote;

/// A part of a reply.
enum Item {
    Square(Square),
    Colour(Colour),
}

/// The response of B to the three stones of A ("First phase").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Swap {
    /// B plays black.
    Black,
    /// B plays white and places a white stone.
    White(Square),
    /// B places a black and a white stone, and A chooses.
    Both(Square, Square),
}

/// Parses the reply to `A`: the squares of two black stones and of a white one.
pub(super) fn opening(reply: &str) -> Result<[Square; 3], Illegal> {
    match items(reply)?[..] {
        [Item::Square(black), Item::Square(second), Item::Square(white)] => {
            Ok([black, second, white])
        }
        _ => Err(unexpected("three squares", reply)),
    }
}

/// Parses the reply to `B`.
pub(super) fn swap(reply: &str) -> Result<Swap, Illegal> {
    match items(reply)?[..] {
        [Item::Colour(Colour::Black)] => Ok(Swap::Black),
        [Item::Colour(Colour::White), Item::Square(white)] => Ok(Swap::White(white)),
        [Item::Square(black), Item::Square(white)] => Ok(Swap::Both(black, white)),
        _ => Err(unexpected("\"B\", or \"W\" and a square, or two squares", reply)),
    }
}

/// Parses the reply to `C`.
pub(super) fn choice(reply: &str) -> Result<Colour, Illegal> {
    match items(reply)?[..] {
        [Item::Colour(colour)] => Ok(colour),
        _ => Err(unexpected("\"B\" or \"W\"", reply)),
    }
}

/// Parses the reply to a number: one square.
pub(super) fn stone(reply: &str) -> Result<Square, Illegal> {
    match items(reply)?[..] {
        [Item::Square(square)] => Ok(square),
        _ => Err(unexpected("one square", reply)),
    }
}

fn unexpected(expected: &str, reply: &str) -> Illegal {
    Illegal(format!("{expected} expected, found {}", quote(reply)))
}

/// All parts of a reply.
fn items(reply: &str) -> Result<Vec<Item>, Illegal> {
    if reply.contains('\n') {
        return Err(Illegal(format!("an answer is one line, found {}", quote(reply))));
    }
    let compact: String = reply.chars().filter(|c| !c.is_whitespace()).collect();
    let mut rest = compact.as_str();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (item, tail) = item(rest)?;
        items.push(item);
        rest = tail;
    }
    Ok(items)
}

/// The first part of a text, and the rest.
fn item(text: &str) -> Result<(Item, &str), Illegal> {
    for (word, colour) in [
        ("\"B\"", Colour::Black),
        ("\"W\"", Colour::White),
        ("B", Colour::Black),
        ("W", Colour::White),
    ] {
        if let Some(rest) = text.strip_prefix(word) {
            return Ok((Item::Colour(colour), rest));
        }
    }
    let error = || Illegal(format!("neither a square nor a colour: {}", quote(text)));
    let inner = text.strip_prefix('(').ok_or_else(error)?;
    let (x, rest) = number(inner).ok_or_else(error)?;
    let inner = rest.strip_prefix(',').ok_or_else(error)?;
    let (y, rest) = number(inner).ok_or_else(error)?;
    let rest = rest.strip_prefix(')').ok_or_else(error)?;
    let coordinate = |digits: &str| digits.parse().ok();
    let square = coordinate(x).zip(coordinate(y)).and_then(|(x, y)| Square::new(x, y));
    match square {
        Some(square) => Ok((Item::Square(square), rest)),
        None => Err(Illegal(format!(
            "{} is outside the board: coordinates are 0 to {}",
            quote(&text[..text.len() - rest.len()]),
            SIDE - 1
        ))),
    }
}

/// The digits of the plain decimal number at the start of a text, and the rest.
fn number(text: &str) -> Option<(&str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let is_valid = number == "0" || !(number.is_empty() || number.starts_with('0'));
    is_valid.then_some((number, rest))
}
