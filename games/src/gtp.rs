//! Answers of the GTP-like protocols of wojna and bitwa.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::match_state::Illegal;

/// The last command of a match.
pub(crate) const FAREWELL: &str = "quit";

/// An answer: `= text`, `=text` or a list after `=`, or `?` with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    /// The command was carried out; the text behind `=`, trimmed.
    Done(&'a str),
    /// The command is not supported, or failed; the text behind `?`, trimmed.
    Refused(&'a str),
}

/// Reads an answer without its final empty line. Blank lines before it are skipped.
///
/// # Errors
/// If it starts with neither `=` nor `?`.
pub(crate) fn parse_reply(text: &str) -> Result<Reply<'_>, Illegal> {
    let text = text.trim_ascii();
    if let Some(rest) = text.strip_prefix('=') {
        Ok(Reply::Done(rest.trim_ascii()))
    } else if let Some(rest) = text.strip_prefix('?') {
        Ok(Reply::Refused(rest.trim_ascii()))
    } else {
        Err(Illegal(format!("an answer starts with = or ?, not with {}", quote(text))))
    }
}

/// The words of the answer to a request for a move.
///
/// # Errors
/// If it starts with neither `=` nor `?`, or refuses to move.
pub(crate) fn parse_words(text: &str) -> Result<Vec<&str>, Illegal> {
    match parse_reply(text)? {
        Reply::Done(words) => Ok(words.split_ascii_whitespace().collect()),
        Reply::Refused(reason) => Err(Illegal(format!("refused to move: {}", quote(reason)))),
    }
}

/// How much of a bot's words is shown back to its author, in characters.
const SHOWN: usize = 60;

/// A bot's words for a message: escaped, and cut if they are long.
pub(crate) fn quote(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{shown:?}")
}

/// A plain decimal number: optional minus, no plus, no leading zeros.
pub(crate) fn plain_number(word: &str) -> Option<i64> {
    let number: i64 = word.parse().ok()?;
    (format!("{number}") == word).then_some(number)
}
