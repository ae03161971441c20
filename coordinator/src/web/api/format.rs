//! The JSON forms of times, hashes, optional texts and counts of forfeits.

use arbiter_games::Forfeit;
use schemars::JsonSchema;
use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::web::layout;

/// The number of forfeits of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ForfeitCounts {
    /// The bot exceeded its time.
    clock: i64,
    /// The bot broke the rules.
    illegal: i64,
    /// The bot's process ended before the match.
    gone: i64,
    /// The bot wrote too much output.
    flood: i64,
}

impl ForfeitCounts {
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

/// A time in RFC 3339, from microseconds since 1970; `None` if out of range.
pub(in crate::web) fn rfc3339_from_micros(micros: i64) -> Option<String> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1000).ok().and_then(rfc3339)
}

/// A time in RFC 3339.
pub(super) fn rfc3339(time: OffsetDateTime) -> Option<String> {
    let format =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    time.to_offset(time::UtcOffset::UTC).format(&format).ok()
}

/// A hash in hexadecimal digits; `None` if it is empty.
pub(super) fn hex_hash(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| layout::hex(bytes))
}

/// A text; `None` if it is empty.
pub(super) fn non_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A rank; `None` for a house bot that has none.
pub(super) fn rank(rank: u32) -> Option<u32> {
    (rank > 0).then_some(rank)
}
