//! How long matches are expected to take, and how many of them make a lot.
//!
//! Nothing that is scored depends on it. A lot should be long enough that handing it out costs
//! nothing beside it, and short enough that little is lost with a worker, and that all workers have
//! something to do until the end.

use arbiter_games::Micros;

use super::TournamentFile;

/// What a lot should take, in milliseconds.
const LOT: i64 = 15_000;
/// The most matches of a lot.
const MOST: i64 = 4096;
/// Lots that there should be at least, while there are so many matches: for as many slots.
const LOTS: u64 = 64;

impl TournamentFile {
    /// How large a record is expected to be, in bytes.
    pub(super) fn record_bytes(&self) -> i64 {
        self.game().record.of(&self.params.values())
    }

    /// How long a match is expected to take, in milliseconds: 1 or more.
    pub(super) fn expected_ms(&self) -> i64 {
        let estimate = || self.game().time.of(&self.params.values());
        self.expected.map_or_else(estimate, Micros::floor_millis).max(1)
    }
}

/// How many matches make a lot, if there are so many in all and each takes so long.
pub(super) fn per_lot(matches: u64, expected_ms: i64) -> i32 {
    let even = i64::try_from(matches / LOTS).unwrap_or(MOST);
    let count = (LOT / expected_ms).min(even).clamp(1, MOST);
    i32::try_from(count).expect("a lot has at most 4096 matches")
}

/// What so many matches take, in milliseconds.
pub(super) fn of_lot(matches: i32, expected_ms: i64) -> i32 {
    i32::try_from(expected_ms.saturating_mul(matches.into())).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::per_lot;

    #[test]
    fn lots_are_long_enough_and_many_enough() {
        // A few: each by itself.
        assert_eq!([per_lot(0, 1), per_lot(63, 1), per_lot(127, 1)], [1, 1, 1]);
        // More: as many lots as slots, until they are long enough.
        assert_eq!([per_lot(128, 100), per_lot(6400, 100), per_lot(64_000, 100)], [2, 100, 150]);
        // However many: a long match is a lot, and a lot has an end.
        assert_eq!([per_lot(1 << 40, 40_000), per_lot(1 << 40, 1)], [1, 4096]);
    }
}
