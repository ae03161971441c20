//! Parses the most frequent lines of a record quickly: messages and replies without characters that
//! JSON escapes. A long match has a million of them.
//!
//! A line of a record has exactly one valid spelling. So a line that begins, continues and ends as
//! it must is valid, and no JSON parser is needed.

use std::ops::Range;

use arbiter_games::{Micros, Seat, TimeSpent};

/// A message or a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlainLine {
    /// Time since the match began.
    pub(crate) time: Micros,
    /// The seat that gets the message, or that replies.
    pub(crate) seat: Seat,
    /// Where the line has the message or the reply.
    pub(crate) text: Range<usize>,
    /// The time of a reply; `None` for a message.
    pub(crate) spent: Option<TimeSpent>,
}

impl PlainLine {
    /// Parses a line. `None` if it is not one of these lines; it may be another valid line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (time, rest) = number(line.strip_prefix("{\"t\":")?)?;
        let (seat, rest) = number(rest.strip_prefix(",\"seat\":")?)?;
        let time = Micros(time);
        let seat = Seat::from_index(usize::from(u8::try_from(seat).ok()?.checked_sub(1)?));
        let range = |begin: &str, text: &str| {
            let start = line.len() - begin.len();
            start..start + text.len()
        };
        if let Some(rest) = rest.strip_prefix(",\"send\":\"") {
            let text = rest.strip_suffix("\"}").filter(|text| text.bytes().all(is_plain))?;
            return Some(Self { time, seat, text: range(rest, text), spent: None });
        }
        let begin = rest.strip_prefix(",\"reply\":\"")?;
        let (text, rest) = begin.split_at(begin.bytes().position(|byte| !is_plain(byte))?);
        let text = range(begin, text);
        let (wall, rest) = number(rest.strip_prefix("\",\"wall_us\":")?)?;
        let (cpu, rest) = number(rest.strip_prefix(",\"cpu_us\":")?)?;
        let spent = Some(TimeSpent { wall: Micros(wall), cpu: Micros(cpu) });
        (rest == "}").then_some(Self { time, seat, text, spent })
    }
}

/// The number at the beginning of a text, and the rest.
fn number(text: &str) -> Option<(i64, &str)> {
    let mut number = 0_i64;
    let mut length = 0;
    for byte in text.bytes().take_while(u8::is_ascii_digit) {
        number = number.checked_mul(10)?.checked_add(i64::from(byte - b'0'))?;
        length += 1;
    }
    let has_one_spelling = length == 1 || (length > 1 && !text.starts_with('0'));
    has_one_spelling.then(|| (number, &text[length..]))
}

/// Whether JSON does not escape a byte of a text.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}
