//! A cache of values that many requests read while they change, such as the newest matches.
//!
//! A value is used until its maximum age. From half of it on, the next request starts a new read
//! and does not wait for it. So under load no request waits, and without requests nothing is read.
//! One request reads a value at a time; those that need it wait without a connection to the
//! database.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Result;
use crate::cache::Cache;

/// Values by key. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct RefreshedCache<K, V> {
    slots: Cache<K, Slot<V>>,
    max_age: Duration,
}

#[derive(Debug)]
struct Slot<V> {
    /// The newest value, and when reading it began.
    latest: Mutex<Option<(Instant, Arc<V>)>>,
    /// Held by the request that reads the value.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl<V> Default for Slot<V> {
    fn default() -> Self {
        Self { latest: Mutex::default(), reading: Arc::default() }
    }
}

impl<V> Slot<V> {
    /// The value and its age, unless it is too old.
    fn fresh(&self, max_age: Duration) -> Option<(Duration, Arc<V>)> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (began, value) = latest.as_ref()?;
        let age = began.elapsed();
        (age < max_age).then(|| (age, Arc::clone(value)))
    }

    async fn read(&self, read: impl Future<Output = Result<V>>) -> Result<Arc<V>> {
        let began = Instant::now();
        let value = Arc::new(read.await?);
        let latest = Some((began, Arc::clone(&value)));
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = latest;
        Ok(value)
    }
}

impl<K, V> RefreshedCache<K, V>
where
    K: Clone + Eq + Hash,
    V: Send + Sync + 'static,
{
    /// An empty cache of at most `capacity` values.
    pub(super) fn new(capacity: usize, max_age: Duration) -> Self {
        Self { slots: Cache::new(capacity), max_age }
    }

    /// The value of a key, which `read` reads if it is missing or too old.
    pub(super) async fn get<R>(&self, key: K, read: R) -> Result<Arc<V>>
    where
        R: Future<Output = Result<V>> + Send + 'static,
    {
        let slot = self.slots.get_or_insert_with(key, Slot::default);
        if let Some((age, value)) = slot.fresh(self.max_age) {
            if age >= self.max_age / 2
                && let Ok(turn) = Arc::clone(&slot.reading).try_lock_owned()
            {
                tokio::spawn(async move {
                    // If it fails, the value grows too old, and the next request gets the error.
                    drop(slot.read(read).await);
                    drop(turn);
                });
            }
            return Ok(value);
        }
        let _turn = slot.reading.lock().await;
        match slot.fresh(self.max_age) {
            Some((_, value)) => Ok(value),
            None => slot.read(read).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;
    use crate::service::ServiceError;

    const LONG: Duration = Duration::from_secs(600);

    /// A cache with the value 1, which is this old.
    async fn with_value(age: Duration, max_age: Duration) -> RefreshedCache<(), u32> {
        let cache = RefreshedCache::new(1, max_age);
        cache.get((), async { Ok(1) }).await.unwrap();
        let slot = cache.slots.get(&(), None).unwrap();
        let began = Instant::now().checked_sub(age).expect("the machine runs longer");
        slot.latest.lock().unwrap().as_mut().unwrap().0 = began;
        cache
    }

    #[tokio::test]
    async fn a_young_value_is_not_read_again() {
        let cache = with_value(Duration::ZERO, LONG).await;
        let value = cache.get((), async { panic!("it is young") }).await.unwrap();
        assert_eq!(*value, 1);
    }

    #[tokio::test]
    async fn requests_that_come_together_read_a_value_once() {
        let cache = RefreshedCache::new(1, LONG);
        let reads = Arc::new(AtomicU32::new(0));
        let read = || {
            let reads = Arc::clone(&reads);
            async move {
                tokio::task::yield_now().await;
                Ok(reads.fetch_add(1, Ordering::Relaxed))
            }
        };
        let values = tokio::join!(cache.get((), read()), cache.get((), read()));
        assert_eq!((*values.0.unwrap(), *values.1.unwrap()), (0, 0));
    }

    #[tokio::test]
    async fn an_older_value_is_used_while_it_is_read_again() {
        let second = Duration::from_secs(1);
        // It is in the second half of its age for another half a minute.
        let cache = with_value(30 * second, 60 * second).await;
        let is_read = Arc::new(Notify::new());
        let read = {
            let is_read = Arc::clone(&is_read);
            async move {
                is_read.notified().await;
                Ok(2)
            }
        };
        assert_eq!(*cache.get((), read).await.unwrap(), 1);
        is_read.notify_one();
        let slot = cache.slots.get(&(), None).unwrap();
        drop(slot.reading.lock().await);
        assert_eq!(*cache.get((), async { panic!("it is young") }).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_value_that_is_too_old_is_not_used() {
        let second = Duration::from_secs(1);
        let cache = with_value(2 * second, second).await;
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let cache = RefreshedCache::new(1, LONG);
        let failed = cache.get((), async { Err(ServiceError::stopping()) }).await;
        assert!(failed.is_err());
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 2);
    }
}
