//! How times, hashes and counts by kind are written.

use arbiter_games::Forfeit;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::web::page;

/// How often each kind of forfeit happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct Forfeits {
    /// Out of time.
    clock: i64,
    /// Against the rules.
    illegal: i64,
    /// Ended before its match.
    gone: i64,
    /// Said far too much.
    flood: i64,
}

impl Forfeits {
    /// From counts in the order of [`Forfeit::ALL`].
    pub(super) fn new(counts: &[i64]) -> Self {
        let count = |kind: Forfeit| {
            let position = Forfeit::ALL.iter().position(|other| *other == kind);
            position.and_then(|position| counts.get(position)).copied().unwrap_or(0)
        };
        Self {
            clock: count(Forfeit::Clock),
            illegal: count(Forfeit::Illegal),
            gone: count(Forfeit::Gone),
            flood: count(Forfeit::Flood),
        }
    }
}

/// A moment as RFC 3339 writes it, from microseconds since 1970; nothing beyond the calendar.
pub(super) fn moment(micros: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok().and_then(written)
}

/// The same from a time.
pub(super) fn written(time: OffsetDateTime) -> Option<String> {
    let format =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time.to_offset(time::UtcOffset::UTC).format(&format).ok()
}

/// A hash in hexadecimal digits, if there is one.
pub(super) fn hash(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| page::hex(bytes))
}

/// A text that says something.
pub(super) fn said(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}
