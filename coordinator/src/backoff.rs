//! How long something rests that failed, before it is tried again.

use std::time::Duration;

/// The rest after the first failure.
const LEAST: Duration = Duration::from_millis(250);
/// The longest rest: what was mended goes on within a minute.
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
