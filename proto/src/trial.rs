//! The measurements of a version's trial.

use serde::{Deserialize, Serialize};

/// The measurements of a trial, as JSON in `TrialReport.measurements`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measurements {
    /// Build time in milliseconds; `None` if there was nothing to build.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_ms: Option<u64>,
    /// The number of matches played to the end.
    pub matches: u32,
    /// The longest time to the first reply of a process, including its start, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_us: Option<u64>,
    /// Wall-clock times of the other replies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replies: Option<ReplyTimeSummary>,
    /// Peak memory in bytes, where it is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
}

/// Percentiles of reply times, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyTimeSummary {
    /// The number of replies.
    pub count: usize,
    /// The median.
    pub p50_us: u64,
    /// The 90th percentile.
    pub p90_us: u64,
    /// The 99th percentile.
    pub p99_us: u64,
    /// The maximum.
    pub max_us: u64,
}

impl ReplyTimeSummary {
    /// The summary of these times in microseconds; `None` if there are none.
    pub fn of(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        let count = times.len();
        // The smallest of the times that at least this percentage of the times does not exceed.
        let percentile = |percent: usize| times[(count * percent).div_ceil(100).max(1) - 1];
        let max_us = *times.last()?;
        Some(Self {
            count,
            p50_us: percentile(50),
            p90_us: percentile(90),
            p99_us: percentile(99),
            max_us,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        assert_eq!(ReplyTimeSummary::of(Vec::new()), None);
        let summary = ReplyTimeSummary::of((1..=200).rev().collect()).unwrap();
        let expected =
            ReplyTimeSummary { count: 200, p50_us: 100, p90_us: 180, p99_us: 198, max_us: 200 };
        assert_eq!(summary, expected);
        let single = ReplyTimeSummary::of(vec![7]).unwrap();
        assert_eq!((single.p50_us, single.p99_us), (7, 7));
    }
}
