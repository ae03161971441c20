//! The expected time of a match, and the number of matches in a lot.
//!
//! Scores depend on neither. A lot should be long enough that few leases are needed. It should be
//! short enough that a failed worker loses little work and all workers have work until the end.

use arbiter_games::Micros;
use arbiter_proto::ids::LotNumber;

use super::TournamentFile;
use crate::db::lots::NewLot;

/// The target time of a lot, in milliseconds.
const LOT_MS: i64 = 15_000;
/// Maximum number of matches in a lot.
const MAX_MATCHES: i64 = 4096;
/// Minimum number of lots of an edition that has at least this number of matches. Then at least
/// this number of slots can play the edition at the same time.
const MIN_LOTS: u64 = 64;

impl TournamentFile {
    /// The expected size of a record, in bytes.
    pub(super) fn record_bytes(&self) -> i64 {
        self.game().record.of(&self.params.values())
    }

    /// The expected time of a match, in milliseconds: 1 or more.
    pub(super) fn expected_ms(&self) -> i64 {
        let estimate = || self.game().time.of(&self.params.values());
        self.expected.map_or_else(estimate, Micros::floor_millis).max(1)
    }
}

/// The number of matches in a lot, for an edition of `matches` that take `expected_ms` each.
pub(super) fn per_lot(matches: u64, expected_ms: i64) -> i32 {
    let max_count = i64::try_from(matches / MIN_LOTS).unwrap_or(MAX_MATCHES);
    let count = (LOT_MS / expected_ms).min(max_count).clamp(1, MAX_MATCHES);
    i32::try_from(count).expect("a lot has at most 4096 matches")
}

/// The expected time of a lot, in milliseconds.
pub(super) fn of_lot(matches: i32, expected_ms: i64) -> i32 {
    i32::try_from(expected_ms.saturating_mul(matches.into())).unwrap_or(i32::MAX)
}

/// The lots of `count` matches from the match `first` on, with scores of this length.
pub(super) fn lots(
    first: i64,
    count: u64,
    per_lot: i32,
    expected_ms: i64,
    score_len: i16,
) -> impl Iterator<Item = NewLot> {
    let end = first + i64::try_from(count).expect("no plan is that long");
    let step = usize::try_from(per_lot).expect("it is positive");
    (first..end).step_by(step).map(move |number| {
        let matches = i64::from(per_lot).min(end - number);
        let matches = i32::try_from(matches).expect("it is at most per_lot");
        NewLot {
            number: LotNumber(number),
            count: matches,
            expected_ms: of_lot(matches, expected_ms),
            score_len,
            blockers: 0,
            has_dependents: false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::per_lot;

    #[test]
    fn lots_are_long_enough_and_many_enough() {
        // With few matches each lot has one match.
        assert_eq!([per_lot(0, 1), per_lot(63, 1), per_lot(127, 1)], [1, 1, 1]);
        // With more matches there are 64 lots, until the lots take 15 seconds.
        assert_eq!([per_lot(128, 100), per_lot(6400, 100), per_lot(64_000, 100)], [2, 100, 150]);
        // With many matches, a long match is a separate lot, and a lot has at most 4096 matches.
        assert_eq!([per_lot(1 << 40, 40_000), per_lot(1 << 40, 1)], [1, 4096]);
    }
}
