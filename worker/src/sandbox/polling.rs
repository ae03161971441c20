//! Waiting for something that is about to happen and that no descriptor tells.

use std::thread;
use std::time::{Duration, Instant};

use crate::fault::Fault;

/// The first pause between two looks; the next ones are longer and longer, ...
const FIRST: Duration = Duration::from_micros(5);

/// ... up to this.
const LONGEST: Duration = Duration::from_micros(200);

/// The most that one look and the pause after it count for.
const MOST: Duration = Duration::from_millis(50);

/// Looks until `is_so`, for `limit` of time: whether it became so.
///
/// A look counts with the time that it takes, since a bot can make it slow. None counts for more than
/// [`MOST`]: a machine that stands still, or a worker that does not get its turn, is not held against
/// a bot.
pub(super) fn poll_until(
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let mut pause = FIRST;
    let mut waited = Duration::ZERO;
    loop {
        let began = Instant::now();
        if is_so()? {
            return Ok(true);
        }
        if waited >= limit {
            return Ok(false);
        }
        thread::sleep(pause);
        waited += began.elapsed().min(MOST);
        pause = (pause * 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_looks_are_counted_and_a_standstill_is_not() {
        let slow = |each: u64| {
            let mut looks = 0;
            let look = || {
                looks += 1;
                thread::sleep(Duration::from_millis(each));
                Ok(false)
            };
            assert!(!poll_until(Duration::from_millis(100), look).unwrap());
            looks
        };
        // Two hundred microseconds of pauses would make five hundred looks.
        assert!((3..=6).contains(&slow(20)));
        assert_eq!(slow(200), 3);
    }
}
