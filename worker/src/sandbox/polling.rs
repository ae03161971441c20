//! Waiting by polling, for short waits without a descriptor to wait on.

use std::thread;
use std::time::{Duration, Instant};

use crate::fault::Fault;

/// The first pause between two polls. It doubles with each poll, ...
const FIRST_PAUSE: Duration = Duration::from_micros(5);

/// ... up to this.
const MAX_PAUSE: Duration = Duration::from_micros(200);

/// The maximum time that one poll and its pause count for.
const MAX_COUNTED: Duration = Duration::from_millis(50);

/// Polls until `is_so` returns true or `limit` has passed. Returns whether it became true.
///
/// The time that a poll takes counts, because a bot can make it slow. But a single poll counts for
/// [`MAX_COUNTED`] at most: a stalled machine, or a worker that is not scheduled, must not count against
/// a bot.
pub(super) fn poll_until(
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let mut pause = FIRST_PAUSE;
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
        waited += began.elapsed().min(MAX_COUNTED);
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_polls_count_but_a_stall_does_not() {
        let slow = |each: u64| {
            let mut polls = 0;
            let poll = || {
                polls += 1;
                thread::sleep(Duration::from_millis(each));
                Ok(false)
            };
            assert!(!poll_until(Duration::from_millis(100), poll).unwrap());
            polls
        };
        // With pauses of 200 µs only, there would be 500 polls.
        assert!((3..=6).contains(&slow(20)));
        assert_eq!(slow(200), 3);
    }
}
