//! How long to wait before something is tried again.

use std::time::Duration;

use arbiter_games::{Dice, Seed};

/// The first wait for a coordinator at the most.
pub(crate) const LEAST: Duration = Duration::from_millis(100);

/// Every wait for a coordinator at the most.
pub(crate) const MOST: Duration = Duration::from_secs(10);

/// Waits that double, each somewhere in the upper half of what it may be: those who lost the same
/// coordinator do not come back all at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    dice: Dice,
    least: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits of at most `least` at first and `most` in the end, for somebody of this name: names
    /// that differ wait differently.
    pub(crate) fn new(name: &str, least: Duration, most: Duration) -> Self {
        Self { dice: Seed::of_text(name).dice(0), least, most, failures: 0 }
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let most = self.least.saturating_mul(1 << self.failures.min(16)).min(self.most);
        self.failures += 1;
        let half = u32::try_from(most.as_micros() / 2).expect("an hour fits");
        Duration::from_micros(u64::from(half) + u64::from(self.dice.below(half + 1)))
    }

    /// Begins again with the shortest.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        let mut backoff = Backoff::new("one", LEAST, MOST);
        let waits: Vec<_> = (0..40).map(|_| backoff.next()).collect();
        assert!(waits[0] >= LEAST / 2 && waits[0] <= LEAST);
        assert!(waits[30..].iter().all(|wait| *wait >= MOST / 2 && *wait <= MOST));
        assert!(waits[30..].windows(2).any(|pair| pair[0] != pair[1]));
        assert_ne!(Backoff::new("two", LEAST, MOST).next(), waits[0]);
        backoff.reset();
        assert!(backoff.next() <= LEAST);
    }
}
