//! Warnings of a trial: deviations from the protocol that this referee tolerates. Other referees
//! perhaps do not tolerate them.

use arbiter_games::Game;
use arbiter_proto::limits::Bytes;

use crate::hints;
use crate::match_runner::SeatSummary;
use crate::sandbox::Limits;

/// A first reply slower than this, in microseconds, gives a warning.
const SLOW_START: u64 = 2_000_000;

/// Peak memory of this share of the limit or more, in percent, gives a warning.
const HIGH_MEMORY_PERCENT: u64 = 80;

/// Warnings from one match. `has_failed`: the evidence of the failure shows standard error.
pub(super) fn from_match(
    game: &Game,
    bad_answers: u32,
    summary: &SeatSummary,
    has_failed: bool,
) -> Vec<String> {
    let tolerated = hints::tolerated(summary.usage.warnings);
    let mut warnings: Vec<_> = tolerated.into_iter().map(str::to_owned).collect();
    if bad_answers > 0 {
        warnings
            .push(format!("{game} tolerated replies that broke its rules: see its documentation"));
    }
    let stderr = String::from_utf8_lossy(&summary.usage.stderr);
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    if let Some(line) = lines.next().filter(|_| !has_failed) {
        let start: String = line.chars().take(80).collect();
        warnings.push(format!("it writes to standard error: {start}"));
    }
    warnings
}

/// Warnings from the measurements of all matches.
pub(super) fn from_measurements(
    start_us: Option<u64>,
    memory: Option<u64>,
    limits: &Limits,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(start) = start_us.filter(|start| *start > SLOW_START) {
        warnings.push(format!("it starts slowly: its first reply took {} ms", start / 1000));
    }
    let Bytes(limit) = limits.memory;
    if let Some(peak) = memory.filter(|peak| peak / 100 >= limit / 10_000 * HIGH_MEMORY_PERCENT) {
        let [used, most] = [peak, limit].map(|bytes| bytes.div_ceil(1_000_000));
        warnings.push(format!("it uses {used} MB of at most {most} MB of memory"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_memory_has_the_unit_of_its_limit() {
        let warnings = |memory| from_measurements(None, Some(memory), &Limits::OFFICIAL);
        assert_eq!(warnings(394_500_000), ["it uses 395 MB of at most 400 MB of memory"]);
        assert!(warnings(300_000_000).is_empty());
        let limits = Limits { memory: Bytes(256 << 20), ..Limits::OFFICIAL };
        let near = from_measurements(None, Some(265_000_000), &limits);
        assert_eq!(near, ["it uses 265 MB of at most 269 MB of memory"]);
    }
}
