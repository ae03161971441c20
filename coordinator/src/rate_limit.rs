//! Token buckets: rate limits that allow short bursts.
//!
//! The rule is the generic cell rate algorithm (ITU-T I.371).

use std::time::{Duration, Instant};

/// How many tokens a bucket holds, and how fast it refills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// The capacity: at most this many tokens can be taken at once.
    pub(crate) burst: u32,
    /// The time in which one token is added.
    pub(crate) interval: Duration,
}

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    /// The time at which it is full, if no token is taken.
    full_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, full_at: now }
    }

    /// Whether it is full. A full bucket is equal to a new one.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }

    /// Checks that `price` tokens can be taken. A price above the capacity costs a full bucket.
    ///
    /// # Errors
    /// The time until there are enough tokens, if there are too few.
    pub(crate) fn check(&self, price: u32, now: Instant) -> Result<(), Duration> {
        let spare = self.rate.burst.saturating_sub(price);
        let wait = self.full_at.saturating_duration_since(now + self.rate.interval * spare);
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Takes `price` tokens. A price above the capacity costs a full bucket.
    ///
    /// # Errors
    /// The time until there are enough tokens, if there are too few. Then no token is taken.
    pub(crate) fn try_take(&mut self, price: u32, now: Instant) -> Result<(), Duration> {
        self.check(price, now)?;
        self.full_at = self.full_at.max(now) + self.rate.interval * price.min(self.rate.burst);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_tokens_are_refilled() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut bucket = TokenBucket::full(Rate { burst: 3, interval: 2 * second }, start);
        for _ in 0..3 {
            assert_eq!(bucket.try_take(1, start), Ok(()));
        }
        assert_eq!(bucket.try_take(1, start), Err(2 * second));
        assert_eq!(bucket.try_take(2, start + second), Err(3 * second), "half an interval counts");
        assert_eq!(bucket.try_take(1, start + 2 * second), Ok(()));
        assert!(!bucket.is_full(start + 7 * second));
        assert!(bucket.is_full(start + 8 * second));
        assert_eq!(bucket.try_take(9, start + 9 * second), Ok(()), "a full bucket is enough");
    }
}
