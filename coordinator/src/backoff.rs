//! Delays before failed work is retried. The delay doubles with each failure.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// The delay after the first failure.
const MIN_DELAY: Duration = Duration::from_millis(250);
/// The longest delay. It is short, so that work resumes soon after the cause of the failures ends.
const MAX_DELAY: Duration = Duration::from_secs(20);

/// Delays that double with each failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    delay: Duration,
}

impl Backoff {
    /// Starts with the shortest delay.
    pub(crate) fn new() -> Self {
        Self { delay: MIN_DELAY }
    }

    /// The next delay.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.delay;
        self.delay = (delay * 2).min(MAX_DELAY);
        delay
    }
}

/// The last failure of one key.
#[derive(Clone, Copy, Debug)]
struct Failure {
    failed_at: Instant,
    retry_at: Instant,
    backoff: Backoff,
}

/// A backoff for each key that failed recently.
#[derive(Debug)]
pub(crate) struct BackoffMap<K>(HashMap<K, Failure>);

impl<K: Copy + Eq + Hash> BackoffMap<K> {
    /// A map without failures.
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// When a key may be retried, if it failed recently.
    pub(crate) fn retry_at(&self, key: K) -> Option<Instant> {
        self.0.get(&key).map(|failure| failure.retry_at)
    }

    /// Whether a key must still wait before it is retried.
    pub(crate) fn is_waiting(&self, key: K) -> bool {
        self.retry_at(key).is_some_and(|retry_at| Instant::now() < retry_at)
    }

    /// Records a failure, and returns the delay until the retry.
    pub(crate) fn record_failure(&mut self, key: K) -> Duration {
        let now = Instant::now();
        let first = Failure { failed_at: now, retry_at: now, backoff: Backoff::new() };
        let failure = self.0.entry(key).or_insert(first);
        let delay = failure.backoff.next();
        failure.failed_at = now;
        failure.retry_at = now + delay;
        delay
    }

    /// Records a success. [`BackoffMap::failed_at`] returns the last failure until its age is
    /// `retention`.
    pub(crate) fn record_success(&mut self, key: K, retention: Duration) {
        let is_expired = |failure: &Failure| failure.failed_at.elapsed() >= retention;
        if self.0.get(&key).is_some_and(is_expired) {
            self.0.remove(&key);
        } else if let Some(failure) = self.0.get_mut(&key) {
            failure.backoff = Backoff::new();
        }
    }

    /// When a key failed last, if that failure is still stored.
    pub(crate) fn failed_at(&self, key: K) -> Option<Instant> {
        self.0.get(&key).map(|failure| failure.failed_at)
    }

    /// Forgets all failures.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum() {
        let mut backoff = Backoff::new();
        let delays: Vec<_> = (0..10).map(|_| backoff.next()).collect();
        assert_eq!(delays[..3], [MIN_DELAY, MIN_DELAY * 2, MIN_DELAY * 4]);
        assert_eq!(delays[9], MAX_DELAY);
    }
}
