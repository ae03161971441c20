//! `[submissions]`: the rules by which bots enter, change and leave.

use std::fmt;

use arbiter_games::Micros;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// The rules of entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submissions {
    /// Whether a player's version needs a trial on a worker before it enters.
    pub preflight: bool,
    /// Changes within this time after the first change are in the same edition.
    pub window: Micros,
    /// Maximum number of versions of an owner within an hour. 0 means no limit.
    pub per_hour: u32,
    /// When entry closes. None if entry never closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closes: Option<Moment>,
    /// From this time until the tournament is closed, the public sees no newer leaderboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<Moment>,
    /// Whether bots of the same owner sit at different tables of four, if possible.
    pub separate_owners: bool,
    /// A bot that forfeits more than this percentage of its matches is suspended. With 100 no bot
    /// is suspended.
    pub stand_down_percent: u8,
    /// Minimum number of matches of a bot before it can be suspended.
    pub stand_down_after: u32,
}

impl Submissions {
    /// The rules of official tournaments.
    pub const OFFICIAL: Self = Self {
        preflight: true,
        window: Micros::from_millis(5000),
        per_hour: 120,
        closes: None,
        freeze: None,
        separate_owners: false,
        stand_down_percent: 100,
        stand_down_after: 20,
    };
}

impl Submissions {
    /// The rules of entry in a stored tournament file, without reading the rest of it.
    ///
    /// # Errors
    /// If they are not valid for this release.
    pub fn stored(settings: &Value) -> Result<Self, serde_json::Error> {
        settings.get("submissions").map_or(Ok(Self::OFFICIAL), Self::deserialize)
    }
}

/// A point in time as tournament files write it: RFC 3339, with its offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub OffsetDateTime);

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.format(&Rfc3339).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // TOML has dates without quotes, which arrive as a table.
        let text = String::deserialize(deserializer).ok();
        let parsed = text.and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
        // Pages show it in UTC, where the last hours of the year 9999 may lie beyond all dates.
        let time = parsed.filter(|time| time.checked_to_offset(UtcOffset::UTC).is_some());
        time.map(Self).ok_or_else(|| {
            de::Error::custom("write a date and a time in quotes, as in \"2027-03-01T12:00:00Z\"")
        })
    }
}
