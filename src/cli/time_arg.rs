//! Points in time and durations on the command line.

use std::ops::RangeInclusive;

use arbiter_games::{Micros, MicrosError};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Allowed intervals: once a second to once a day.
const INTERVALS: RangeInclusive<std::time::Duration> =
    std::time::Duration::from_secs(1)..=std::time::Duration::from_secs(86_400);

/// Parses an RFC 3339 time, as in tournament files.
pub(super) fn moment(text: &str) -> Result<OffsetDateTime, String> {
    let parsed = OffsetDateTime::parse(text, &Rfc3339);
    parsed.map_err(|_| "write a date and a time, as in 2027-03-01T12:00:00Z".to_owned())
}

/// Microseconds since 1970.
pub(super) fn micros(time: OffsetDateTime) -> i64 {
    i64::try_from(time.unix_timestamp_nanos() / 1000).unwrap_or(i64::MAX)
}

/// Parses a duration: days (`90d`), or a duration as in tournament files.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let days: Option<u16> = text.strip_suffix('d').and_then(|days| days.trim_end().parse().ok());
    if let Some(days) = days {
        return Ok(Duration::days(days.into()));
    }
    let parsed: Result<Micros, _> = text.parse();
    let remedy = |_| "write a whole number and a unit, as in 30min, 12h or 90d".to_owned();
    parsed.map(|span| Duration::microseconds(span.0)).map_err(remedy)
}

/// Parses a duration as in tournament files.
pub(super) fn duration(text: &str) -> Result<std::time::Duration, MicrosError> {
    text.parse().map(|Micros(micros)| std::time::Duration::from_micros(micros.unsigned_abs()))
}

/// Parses an interval of one second to one day.
pub(super) fn interval(text: &str) -> Result<std::time::Duration, String> {
    let interval = duration(text).map_err(|error| error.to_string())?;
    let is_valid = INTERVALS.contains(&interval);
    is_valid.then_some(interval).ok_or_else(|| "choose 1s to 24h".to_owned())
}

/// An absolute time, or a distance from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeArg {
    At(OffsetDateTime),
    Distance(Duration),
}

impl TimeArg {
    /// The time, with a distance counted into the future.
    pub(super) fn after(self, now: OffsetDateTime) -> OffsetDateTime {
        match self {
            Self::At(moment) => moment,
            Self::Distance(span) => now + span,
        }
    }

    /// The time, with a distance counted into the past.
    pub(super) fn before(self, now: OffsetDateTime) -> OffsetDateTime {
        match self {
            Self::At(moment) => moment,
            Self::Distance(span) => now - span,
        }
    }
}

/// Parses a time or a duration.
pub(super) fn time_arg(text: &str) -> Result<TimeArg, String> {
    if let Ok(moment) = moment(text) {
        return Ok(TimeArg::At(moment));
    }
    let remedy = |_| "write 90d, 12h, or a time such as 2027-03-01T12:00:00Z".to_owned();
    span(text).map(TimeArg::Distance).map_err(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_durations_are_parsed() {
        assert_eq!(span("90d"), Ok(Duration::days(90)));
        assert_eq!(span("15min"), Ok(Duration::minutes(15)));
        for bad in ["", "d", "-1d", "99999d", "soon"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        let now = moment("2027-03-01T12:00:00Z").unwrap();
        assert_eq!(time_arg("2027-03-01T12:00:00Z"), Ok(TimeArg::At(now)));
        assert_eq!(time_arg("12h").unwrap().before(now), now - Duration::hours(12));
        assert_eq!(time_arg("12h").unwrap().after(now), now + Duration::hours(12));
        assert!(time_arg("tomorrow").unwrap_err().contains("90d"));
    }
}
