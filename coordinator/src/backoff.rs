//! How long something rests that failed, before it is tried again.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

/// The rest after the first failure.
const LEAST: Duration = Duration::from_millis(250);
/// The longest rest: work goes on within a minute after its cause is gone.
const MOST: Duration = Duration::from_secs(20);

/// Rests that double from failure to failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    rest: Duration,
}

impl Backoff {
    /// Begins with the shortest.
    pub(crate) fn new() -> Self {
        Self { rest: LEAST }
    }

    /// The next rest.
    pub(crate) fn next(&mut self) -> Duration {
        let rest = self.rest;
        self.rest = (rest * 2).min(MOST);
        rest
    }
}

/// How something failed lately.
#[derive(Clone, Copy, Debug)]
struct Failing {
    at: Instant,
    until: Instant,
    backoff: Backoff,
}

/// What failed lately, by a key each, and rests.
#[derive(Debug)]
pub(crate) struct Rests<K>(HashMap<K, Failing>);

impl<K: Copy + Eq + Hash> Rests<K> {
    /// Nothing rests.
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Until when something rests, or rested last.
    pub(crate) fn until(&self, key: K) -> Option<Instant> {
        self.0.get(&key).map(|failing| failing.until)
    }

    /// Whether something rests now.
    pub(crate) fn rests(&self, key: K) -> bool {
        self.until(key).is_some_and(|until| Instant::now() < until)
    }

    /// Something failed: how long it rests.
    pub(crate) fn fail(&mut self, key: K) -> Duration {
        let at = Instant::now();
        let first = Failing { at, until: at, backoff: Backoff::new() };
        let failing = self.0.entry(key).or_insert(first);
        let rest = failing.backoff.next();
        (failing.at, failing.until) = (at, at + rest);
        rest
    }

    /// Something succeeded. Its last failure is remembered for a while.
    pub(crate) fn succeed(&mut self, key: K, remembered: Duration) {
        let is_over = |failing: &Failing| failing.at.elapsed() >= remembered;
        if self.0.get(&key).is_some_and(is_over) {
            self.0.remove(&key);
        } else if let Some(failing) = self.0.get_mut(&key) {
            failing.backoff = Backoff::new();
        }
    }

    /// When something failed last, as long as that is remembered.
    pub(crate) fn failed_at(&self, key: K) -> Option<Instant> {
        self.0.get(&key).map(|failing| failing.at)
    }

    /// Nothing rests any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_double_up_to_the_longest() {
        let mut backoff = Backoff::new();
        let rests: Vec<_> = (0..10).map(|_| backoff.next()).collect();
        assert_eq!(rests[..3], [LEAST, LEAST * 2, LEAST * 4]);
        assert_eq!(rests[9], MOST);
    }
}
