//! What the results of an edition are and how fast they come, in words for people. Pages and
//! commands use the same words.

use std::fmt;

/// The speed of an edition, in matches a second, as text.
pub fn speed(rate: f64) -> String {
    if rate < 1.0 {
        format!("{:.1} matches a minute", rate * 60.0)
    } else {
        format!("{rate:.1} matches a second")
    }
}

/// What the results of an edition are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditionStatus {
    /// Its leaderboard is the official one.
    Official,
    /// It is not complete.
    Provisional,
    /// It was cancelled.
    Cancelled,
    /// It was official until a newer edition was complete, or until its tournament was cancelled.
    FormerlyOfficial,
    /// It is in a rehearsal, so it is never official.
    Rehearsal,
    /// Not official, with a state that this build does not know.
    NotOfficial,
}

impl EditionStatus {
    /// The status of an edition with this state: `planning`, `running`, `complete` or `cancelled`.
    /// Editions of a rehearsal are never official.
    pub fn of(is_official: bool, state: &str, is_rehearsal: bool) -> Self {
        match state {
            _ if is_official => Self::Official,
            "cancelled" => Self::Cancelled,
            _ if is_rehearsal => Self::Rehearsal,
            "planning" | "running" => Self::Provisional,
            "complete" => Self::FormerlyOfficial,
            _ => Self::NotOfficial,
        }
    }

    /// Its text: `official`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Official => "official",
            Self::Provisional => "provisional",
            Self::Cancelled => "cancelled",
            Self::FormerlyOfficial => "formerly official",
            Self::Rehearsal => "unofficial rehearsal",
            Self::NotOfficial => "not official",
        }
    }
}

impl fmt::Display for EditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_official_edition_is_called_official() {
        for (state, text) in [
            ("planning", "provisional"),
            ("running", "provisional"),
            ("complete", "formerly official"),
            ("cancelled", "cancelled"),
            ("", "not official"),
        ] {
            assert_eq!(EditionStatus::of(false, state, false).as_str(), text);
            assert_eq!(EditionStatus::of(true, state, false), EditionStatus::Official);
        }
    }

    #[test]
    fn an_edition_of_a_rehearsal_was_never_official() {
        for state in ["planning", "running", "complete", ""] {
            let status = EditionStatus::of(false, state, true);
            assert_eq!(status.as_str(), "unofficial rehearsal", "{state}");
        }
        assert_eq!(EditionStatus::of(false, "cancelled", true), EditionStatus::Cancelled);
    }
}
