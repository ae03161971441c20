//! Quotes of replies in messages to a bot's author.

use alloc::format;
use alloc::string::String;

/// The maximum length of a quote, in characters.
const MAX_QUOTE: usize = 24;

/// The start of a text in quotes, with unprintable characters escaped.
pub(crate) fn quote(text: &str) -> String {
    let start: String = text.chars().take(MAX_QUOTE).collect();
    let ellipsis = if start.len() < text.len() { "…" } else { "" };
    format!("{start:?}{ellipsis}")
}
