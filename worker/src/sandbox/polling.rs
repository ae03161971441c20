//! Waiting by polling, for short waits without a descriptor to wait on.

use std::thread;
use std::time::{Duration, Instant};

use crate::fault::Fault;

/// The first pause between two polls. Each poll doubles it.
const FIRST_PAUSE: Duration = Duration::from_micros(5);

/// The maximum pause between two polls.
const MAX_PAUSE: Duration = Duration::from_micros(200);

/// The maximum time that one poll and its pause count for.
const MAX_COUNTED: Duration = Duration::from_millis(50);

/// Polls until `is_done` returns true or `limit` has passed. Returns whether it returned true.
///
/// The time that a poll takes counts, because a bot can make it slow. But a single poll counts for
/// [`MAX_COUNTED`] at most: a stalled machine, or a worker that is not scheduled, must not count
/// against a bot.
pub(super) fn poll_until(
    limit: Duration,
    mut is_done: impl FnMut() -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let mut pause = FIRST_PAUSE;
    let mut waited = Duration::ZERO;
    loop {
        let poll_start = Instant::now();
        if is_done()? {
            return Ok(true);
        }
        if waited >= limit {
            return Ok(false);
        }
        thread::sleep(pause);
        waited += poll_start.elapsed().min(MAX_COUNTED);
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_polls_count_but_a_stall_does_not() {
        let polls_with_delay = |millis: u64| {
            let mut polls = 0;
            let poll = || {
                polls += 1;
                thread::sleep(Duration::from_millis(millis));
                Ok(false)
            };
            assert!(!poll_until(Duration::from_millis(100), poll).unwrap());
            polls
        };
        // With pauses of 200 µs only, there would be 500 polls.
        assert!((3..=6).contains(&polls_with_delay(20)));
        assert_eq!(polls_with_delay(200), 3);
    }
}
