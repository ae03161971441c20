//! Token buckets: rate limits that allow short bursts.

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
    tokens: u32,
    /// The time at which `tokens` was computed.
    updated_at: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(crate) fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, tokens: rate.burst, updated_at: now }
    }

    /// Adds the tokens that are due since the last update.
    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.updated_at).as_nanos();
        let new_tokens = elapsed / self.rate.interval.as_nanos().max(1);
        let missing = self.rate.burst - self.tokens;
        match u32::try_from(new_tokens) {
            Ok(new_tokens) if new_tokens < missing => {
                self.tokens += new_tokens;
                self.updated_at += self.rate.interval * new_tokens;
            }
            _ => *self = Self::full(self.rate, now),
        }
    }

    /// Whether it is full. A full bucket is equal to a new one.
    pub(crate) fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.tokens == self.rate.burst
    }

    /// Checks that `price` tokens can be taken. A price above the capacity costs a full bucket.
    ///
    /// # Errors
    /// The time until there are enough tokens, if there are too few.
    pub(crate) fn check(&mut self, price: u32, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        let price = price.min(self.rate.burst);
        if price <= self.tokens {
            return Ok(());
        }
        let elapsed = now.saturating_duration_since(self.updated_at);
        Err((self.rate.interval * (price - self.tokens)).saturating_sub(elapsed))
    }

    /// Takes `price` tokens. A price above the capacity costs a full bucket.
    ///
    /// # Errors
    /// The time until there are enough tokens, if there are too few. Then no token is taken.
    pub(crate) fn try_take(&mut self, price: u32, now: Instant) -> Result<(), Duration> {
        self.check(price, now)?;
        self.tokens -= price.min(self.rate.burst);
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
