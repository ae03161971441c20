//! Deadlines: a time, and how long it is until then. The script of the pages counts down; without
//! it the page shows both as of the request.
//!
//! The clock of a browser may be wrong. So a deadline carries the server's time, and the script
//! counts the time since the page was sent.

use maud::{Markup, html};
use time::OffsetDateTime;

use super::layout;

/// A deadline in a sentence that begins with `before`: `Entry is open until 2027-03-01 12:00 UTC
/// (in 2 h 14 min).` When the time has come, the script shows `after` in its place.
pub(super) fn sentence(
    before: &str,
    at: OffsetDateTime,
    now: OffsetDateTime,
    after: &str,
) -> Markup {
    let now_ms = now.unix_timestamp_nanos() / 1_000_000;
    let left = (at - now).whole_seconds();
    html! {
        span data-deadline=(after) data-now=(now_ms) {
            (before) " " (layout::time(at)) " (" (layout::time_with_text(at, &remaining(left))) ")."
        }
    }
}

/// The time until a deadline in its two largest units. The script has the same function.
fn remaining(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..60 => format!("in {seconds} s"),
        seconds @ ..3600 => format!("in {} min {} s", seconds / 60, seconds % 60),
        seconds @ ..172_800 => format!("in {} h {} min", seconds / 3600, seconds / 60 % 60),
        seconds => format!("in {} days {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_remains_is_said_in_two_units() {
        for (seconds, text) in [
            (-5, "in 0 s"),
            (59, "in 59 s"),
            (60, "in 1 min 0 s"),
            (3599, "in 59 min 59 s"),
            (3600, "in 1 h 0 min"),
            (8040, "in 2 h 14 min"),
            (172_799, "in 47 h 59 min"),
            (176_400, "in 2 days 1 h"),
        ] {
            assert_eq!(remaining(seconds), text);
        }
    }
}
