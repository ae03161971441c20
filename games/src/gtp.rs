//! Replies of the GTP-like protocols of wojna and bitwa.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::match_state::Illegal;

/// The last command of a match.
pub(crate) const FAREWELL: &str = "quit";

/// A reply: `=` with a text or a list, or `?` with a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply<'a> {
    /// The command succeeded; the text after `=`, trimmed.
    Done(&'a str),
    /// The command is unsupported or failed; the text after `?`, trimmed.
    Refused(&'a str),
}

/// Parses a reply without its final empty line. Blank lines before it are skipped.
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

/// The words of the reply to a request for a move.
///
/// # Errors
/// If it starts with neither `=` nor `?`, or refuses to move.
pub(crate) fn parse_words(text: &str) -> Result<Vec<&str>, Illegal> {
    match parse_reply(text)? {
        Reply::Done(words) => Ok(words.split_ascii_whitespace().collect()),
        Reply::Refused(reason) => Err(Illegal(format!("refused to move: {}", quote(reason)))),
    }
}

/// The maximum length of a quote for the bot's author, in characters.
const SHOWN: usize = 60;

/// A quote of a reply for a message: escaped, and shortened if it is long.
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
