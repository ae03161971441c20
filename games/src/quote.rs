//! A bot's words in messages to its author.

use alloc::format;
use alloc::string::String;

/// How much of a bad answer is quoted, in characters.
const QUOTED: usize = 24;

/// The start of a text in quotes, with everything unprintable escaped.
pub(crate) fn quote(text: &str) -> String {
    let start: String = text.chars().take(QUOTED).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{more}")
}
