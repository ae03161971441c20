//! What the trial of a version measures.

use serde::{Deserialize, Serialize};

/// What was measured in the matches of a trial, as JSON in `TrialReport.figures`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurements {
    /// How long it took to build, in milliseconds; nothing if there was nothing to build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_ms: Option<u64>,
    /// Matches that were played to their end.
    pub matches: u32,
    /// The longest wait for the first answer of a process, which includes its start, in
    /// microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
    /// How long the other answers took on the wall.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<ReplyTimeSummary>,
    /// The most memory in use at a time, in bytes, where that is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// How long answers took, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTimeSummary {
    /// How many there were.
    pub count: usize,
    /// Half of them took no longer.
    pub p50_us: u64,
    /// Nine of ten took no longer.
    pub p90_us: u64,
    /// Ninety-nine of a hundred took no longer.
    pub p99_us: u64,
    /// None took longer.
    pub max_us: u64,
}

impl ReplyTimeSummary {
    /// Of answers that took so long, in microseconds; nothing if there were none.
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let count = times.len();
        // The least of them that so many in a hundred do not exceed.
        let part = |hundredths: usize| times[(count * hundredths).div_ceil(100).max(1) - 1];
        let max_us = *times.last()?;
        Some(Self { count, p50_us: part(50), p90_us: part(90), p99_us: part(99), max_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        assert_eq!(ReplyTimeSummary::of(Vec::new()), None);
        let found = ReplyTimeSummary::of((1..=200).rev().collect()).unwrap();
        let due =
            ReplyTimeSummary { count: 200, p50_us: 100, p90_us: 180, p99_us: 198, max_us: 200 };
        assert_eq!(found, due);
        assert_eq!(ReplyTimeSummary::of(vec![7]).map(|one| (one.p50_us, one.p99_us)), Some((7, 7)));
    }
}
