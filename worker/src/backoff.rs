//! Exponential backoff with jitter.

use std::time::Duration;

use arbiter_games::{Dice, Seed};

/// Upper bound of the first wait before reconnecting to a coordinator.
pub(crate) const MIN_RECONNECT: Duration = Duration::from_millis(100);

/// Upper bound of every wait before reconnecting to a coordinator.
pub(crate) const MAX_RECONNECT: Duration = Duration::from_secs(10);

/// Waits whose upper bound doubles from `min` to `max`. Each wait is random within the upper half
/// of its bound, so that workers do not all reconnect at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    dice: Dice,
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// A sequence of waits. It differs for different names.
    pub(crate) fn new(name: &str, min: Duration, max: Duration) -> Self {
        Self { dice: Seed::of_text(name).dice(0), min, max, failures: 0 }
    }

    /// Returns the next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let max = self.min.saturating_mul(1 << self.failures.min(16)).min(self.max);
        self.failures += 1;
        let half = u32::try_from(max.as_micros() / 2).expect("an hour fits");
        Duration::from_micros(u64::from(half) + u64::from(self.dice.below(half + 1)))
    }

    /// Continues with the shortest wait.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        let mut backoff = Backoff::new("one", MIN_RECONNECT, MAX_RECONNECT);
        let waits: Vec<_> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= MIN_RECONNECT / 2 && waits[0] <= MIN_RECONNECT);
        assert!(
            waits[30..].iter().all(|wait| *wait >= MAX_RECONNECT / 2 && *wait <= MAX_RECONNECT)
        );
        assert!(waits[30..].windows(2).any(|pair| pair[0] != pair[1]));
        assert_ne!(Backoff::new("two", MIN_RECONNECT, MAX_RECONNECT).next(), waits[0]);
        backoff.reset();
        assert!(backoff.next() <= MIN_RECONNECT);
    }
}
