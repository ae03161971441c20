//! Token buckets: how often something may be done, in one go and in the long run.

use std::time::{Duration, Instant};

/// How much a bucket holds, and how fast it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// What it holds when it is full: so much may be taken in one go.
    pub(crate) most: u32,
    /// How long it takes until there is one more.
    pub(crate) each: Duration,
}

/// What is left of what may be taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    left: u32,
    /// When that was so.
    at: Instant,
}

impl TokenBucket {
    /// A full one.
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, left: rate.most, at: now }
    }

    /// Adds what has come in since it was last looked at.
    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_nanos();
        let more = passed / self.rate.each.as_nanos().max(1);
        let room = self.rate.most - self.left;
        match u32::try_from(more) {
            Ok(more) if more < room => {
                self.left += more;
                self.at += self.rate.each * more;
            }
            _ => (self.left, self.at) = (self.rate.most, now),
        }
    }

    /// Whether it is full: then it is like a new one.
    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left == self.rate.most
    }

    /// Looks whether so much is there.
    ///
    /// # Errors
    /// If it is not: how long until it is.
    pub(crate) fn look(&mut self, price: u32, now: Instant) -> Result<(), Duration> {
        self.fill(now);
        let price = price.min(self.rate.most);
        if price <= self.left {
            return Ok(());
        }
        let passed = now.saturating_duration_since(self.at);
        Err((self.rate.each * (price - self.left)).saturating_sub(passed))
    }

    /// Takes so much, or all that a full one holds if that is less.
    ///
    /// # Errors
    /// If there is not as much left, and nothing is taken: how long until there is.
    pub(crate) fn take(&mut self, price: u32, now: Instant) -> Result<(), Duration> {
        self.look(price, now)?;
        self.left -= price.min(self.rate.most);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back_in_time() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut bucket = TokenBucket::full(Rate { most: 3, each: 2 * second }, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(1, start), Ok(()));
        }
        assert_eq!(bucket.take(1, start), Err(2 * second));
        assert_eq!(bucket.take(2, start + second), Err(3 * second), "the half is not lost");
        assert_eq!(bucket.take(1, start + 2 * second), Ok(()));
        assert!(!bucket.is_full(start + 7 * second));
        assert!(bucket.is_full(start + 8 * second));
        assert_eq!(bucket.take(9, start + 9 * second), Ok(()), "all there can be is enough");
    }
}
