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
    Success(&'a str),
    /// The command is unsupported or failed; the text after `?`, trimmed.
    Failure(&'a str),
}

/// Parses a reply without its final empty line. Blank lines before it are skipped.
///
/// # Errors
/// If it starts with neither `=` nor `?`.
pub(crate) fn parse_reply(text: &str) -> Result<Reply<'_>, Illegal> {
    let text = text.trim_ascii();
    if let Some(rest) = text.strip_prefix('=') {
        Ok(Reply::Success(rest.trim_ascii()))
    } else if let Some(rest) = text.strip_prefix('?') {
        Ok(Reply::Failure(rest.trim_ascii()))
    } else {
        Err(Illegal(format!("an answer starts with = or ?, not with {}", quote(text))))
    }
}

/// Parses the reply to a request for a move into its words.
///
/// # Errors
/// If it starts with neither `=` nor `?`, or refuses to move.
pub(crate) fn parse_words(text: &str) -> Result<Vec<&str>, Illegal> {
    match parse_reply(text)? {
        Reply::Success(words) => Ok(words.split_ascii_whitespace().collect()),
        Reply::Failure(reason) => Err(Illegal(format!("refused to move: {}", quote(reason)))),
    }
}

/// The maximum length of a quote for the bot's author, in characters.
const MAX_QUOTE: usize = 60;

/// A reply in quotes, for messages. It is escaped, and shortened if it is long.
pub(crate) fn quote(text: &str) -> String {
    let mut start: String = text.chars().take(MAX_QUOTE).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    format!("{start:?}")
}

/// Parses a decimal number with an optional minus, without a plus and without leading zeros.
pub(crate) fn plain_number(word: &str) -> Option<i64> {
    let number: i64 = word.parse().ok()?;
    (format!("{number}") == word).then_some(number)
}
