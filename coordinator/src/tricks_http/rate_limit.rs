//! Rate limits by token. The requests of one token are handled one at a time, and too many are
//! refused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as ShortMutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::rate_limit::{Rate, TokenBucket};

/// The limit of a token, in tables. The burst is enough for three sessions of 200 tables with about
/// 30 requests each. Then 1000 tables per second are allowed.
const TABLES: Rate = Rate { burst: 20_000, interval: Duration::from_millis(1) };
/// The price of a request without tables, in tables.
const REQUEST: u32 = 2;
/// The number of buckets at which full ones are removed.
const MAX_BUCKETS: usize = 4096;

/// The price of a request for this number of tables.
pub(super) fn price(tables: usize) -> u32 {
    u32::try_from(tables).unwrap_or(u32::MAX).saturating_add(REQUEST)
}

/// The hash of a token.
type Hash = [u8; 32];

/// The buckets of recent tokens. Invalid tokens have buckets too, because the bucket is locked
/// before the token is looked up.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets(Arc<ShortMutex<HashMap<Hash, Arc<Mutex<TokenBucket>>>>>);

impl Buckets {
    /// Waits until the token's earlier requests are done, and returns its bucket.
    pub(super) async fn lock(&self, token: Hash, now: Instant) -> OwnedMutexGuard<TokenBucket> {
        let bucket = self.bucket(token, now);
        bucket.lock_owned().await
    }

    fn bucket(&self, token: Hash, now: Instant) -> Arc<Mutex<TokenBucket>> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&token) {
            // An unused full bucket is equal to a new one, so it can be removed.
            buckets.retain(|_, shared| match shared.try_lock() {
                Ok(bucket) => !bucket.is_full(now) || Arc::strong_count(shared) > 1,
                Err(_) => true,
            });
        }
        let new = || Arc::new(Mutex::new(TokenBucket::full(TABLES, now)));
        Arc::clone(buckets.entry(token).or_insert_with(new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_refills() {
        let start = Instant::now();
        let mut bucket = TokenBucket::full(TABLES, start);
        let mut sessions = 0;
        while bucket.try_take(price(198), start).is_ok() {
            sessions += 1;
        }
        assert_eq!(sessions, 100);
        assert_eq!(bucket.try_take(price(98), start), Err(Duration::from_millis(100)));
        assert_eq!(bucket.try_take(price(98), start + Duration::from_millis(100)), Ok(()));
        let later = start + Duration::from_secs(3600);
        assert_eq!(bucket.try_take(price(18_000), later), Ok(()));
        assert!(bucket.try_take(price(2000), later).is_err());
    }

    #[tokio::test]
    async fn full_buckets_are_removed() {
        let start = Instant::now();
        let buckets = Buckets::default();
        let mut held = buckets.lock([1; 32], start).await;
        held.try_take(price(1000), start).unwrap();
        for token in 0..MAX_BUCKETS {
            let mut hash = [0; 32];
            hash[..8].copy_from_slice(&token.to_be_bytes());
            drop(buckets.lock(hash, start).await);
        }
        let len = buckets.0.lock().unwrap().len();
        assert!(len < 10, "{len}");
        drop(held);
        let mut held = buckets.lock([1; 32], start).await;
        assert!(held.try_take(price(19_000), start).is_err(), "a used bucket is not removed");
    }
}
