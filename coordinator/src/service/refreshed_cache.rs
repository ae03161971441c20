//! Values that many requests read while they change, such as the newest matches.
//!
//! One request reads a value at a time. The others use the latest value if it is fresh enough for
//! them. If it is old, the next request also starts a new read, and does not wait for it. So under
//! load requests do not wait, and without requests nothing is read.
//!
//! Requests without a fresh value wait for the reader without a connection to the database, and
//! take its result, even an error: if the database does not respond, they do not wait for it one
//! after the other. Only a read in the background that fails has no result: one of the requests
//! that wait for it reads again, and the others take that result.

use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Result;
use crate::cache::Cache;

/// The result of a read.
#[derive(Debug)]
pub(super) struct ReadResult<V> {
    /// When the read began.
    pub(super) began: Instant,
    /// When it ended.
    pub(super) ended: Instant,
    pub(super) result: Result<Arc<V>>,
}

impl<V> ReadResult<V> {
    async fn of(read: impl Future<Output = Result<V>>) -> Self {
        let began = Instant::now();
        let result = read.await.map(Arc::new);
        Self { began, ended: Instant::now(), result }
    }
}

impl<V> Clone for ReadResult<V> {
    fn clone(&self) -> Self {
        Self { result: self.result.clone(), ..*self }
    }
}

/// A value that is read again and again.
#[derive(Debug)]
pub(super) struct RefreshedValue<V> {
    latest: Mutex<Option<ReadResult<V>>>,
    /// Held by the request that reads the value.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl<V> Default for RefreshedValue<V> {
    fn default() -> Self {
        Self { latest: Mutex::default(), reading: Arc::default() }
    }
}

impl<V: Send + Sync + 'static> RefreshedValue<V> {
    /// The latest result that is fresh, which `read` reads if there is none. From the age of
    /// `refresh_after` on, a fresh value is read again in the background.
    pub(super) async fn get<R>(
        self: &Arc<Self>,
        is_fresh: impl Fn(&ReadResult<V>) -> bool,
        refresh_after: Duration,
        read: R,
    ) -> Result<Arc<V>>
    where
        R: Future<Output = Result<V>> + Send + 'static,
    {
        if let Some(latest) = self.latest().filter(&is_fresh) {
            if latest.began.elapsed() >= refresh_after
                && let Ok(turn) = Arc::clone(&self.reading).try_lock_owned()
            {
                let value = Arc::clone(self);
                tokio::spawn(async move {
                    let latest = ReadResult::of(read).await;
                    // After an error, the present value is used until it is too old.
                    if latest.result.is_ok() {
                        value.set(latest);
                    }
                    drop(turn);
                });
            }
            return latest.result;
        }
        let _turn = self.reading.lock().await;
        if let Some(latest) = self.latest().filter(is_fresh) {
            return latest.result;
        }
        let latest = ReadResult::of(read).await;
        self.set(latest.clone());
        latest.result
    }

    fn latest(&self) -> Option<ReadResult<V>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, latest: ReadResult<V>) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(latest);
    }
}

/// Refreshed values by key.
#[derive(Debug)]
pub(super) struct RefreshedCache<K, V> {
    values: Cache<K, RefreshedValue<V>>,
    max_age: Duration,
}

impl<K: Clone + Eq + Hash, V: Send + Sync + 'static> RefreshedCache<K, V> {
    /// An empty cache of at most `capacity` values. They are used until this age, or until the end
    /// of the read that a request waited for.
    pub(super) fn new(capacity: usize, max_age: Duration) -> Self {
        Self { values: Cache::new(capacity), max_age }
    }

    /// The value of a key, which `read` reads if it is missing or too old. It is read again in the
    /// background from half of the maximum age on.
    pub(super) async fn get<R>(&self, key: K, read: R) -> Result<Arc<V>>
    where
        R: Future<Output = Result<V>> + Send + 'static,
    {
        let arrival = Instant::now();
        let value = self.values.get_or_insert_with(key, RefreshedValue::default);
        let is_fresh = |latest: &ReadResult<V>| {
            let is_young = latest.result.is_ok() && latest.began.elapsed() < self.max_age;
            is_young || latest.ended >= arrival
        };
        value.get(is_fresh, self.max_age / 2, read).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;
    use crate::service::ServiceError;

    const SECOND: Duration = Duration::from_secs(1);
    const LONG: Duration = Duration::from_secs(600);

    /// A cache with the value 1, which is this old.
    async fn with_value(age: Duration, max_age: Duration) -> RefreshedCache<(), u32> {
        let cache = RefreshedCache::new(1, max_age);
        cache.get((), async { Ok(1) }).await.unwrap();
        let value = cache.values.get(&(), None).unwrap();
        let mut latest = value.latest().unwrap();
        latest.began = latest.began.checked_sub(age).expect("the machine runs longer");
        latest.ended = latest.began;
        value.set(latest);
        cache
    }

    /// Waits until no request reads the value.
    async fn wait_for_reader(cache: &RefreshedCache<(), u32>) {
        drop(cache.values.get(&(), None).unwrap().reading.lock().await);
    }

    #[tokio::test]
    async fn a_young_value_is_not_read_again() {
        let cache = with_value(Duration::ZERO, LONG).await;
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 1);
        wait_for_reader(&cache).await;
        assert_eq!(*cache.get((), async { Ok(3) }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn an_older_value_is_used_while_it_is_read_again() {
        // It is in the second half of its age for another half a minute.
        let cache = with_value(30 * SECOND, 60 * SECOND).await;
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
        wait_for_reader(&cache).await;
        assert_eq!(*cache.get((), async { Ok(3) }).await.unwrap(), 2);
    }

    #[tokio::test]
    async fn an_older_value_is_kept_if_reading_it_again_fails() {
        let cache = with_value(30 * SECOND, 60 * SECOND).await;
        let failed = async { Err(ServiceError::stopping()) };
        assert_eq!(*cache.get((), failed).await.unwrap(), 1);
        wait_for_reader(&cache).await;
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 1);
    }

    #[tokio::test]
    async fn a_value_that_is_too_old_is_not_used() {
        let cache = with_value(2 * SECOND, SECOND).await;
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 2);
    }

    /// The results of three requests that come together, and how often the value was read. Every
    /// value is too old as soon as it is read.
    async fn together(result: fn() -> Result<u32>) -> ([Result<Arc<u32>>; 3], u32) {
        let cache = RefreshedCache::new(1, Duration::ZERO);
        let reads = Arc::new(AtomicU32::new(0));
        let get = || {
            let reads = Arc::clone(&reads);
            cache.get((), async move {
                tokio::task::yield_now().await;
                reads.fetch_add(1, Ordering::Relaxed);
                result()
            })
        };
        let (first, second, third) = tokio::join!(get(), get(), get());
        ([first, second, third], reads.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn requests_that_come_together_read_a_value_once() {
        let (results, reads) = together(|| Ok(1)).await;
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(reads, 1);
    }

    #[tokio::test]
    async fn requests_that_come_together_share_an_error() {
        let (results, reads) = together(|| Err(ServiceError::stopping())).await;
        assert!(results.iter().all(Result::is_err));
        assert_eq!(reads, 1);
    }

    #[tokio::test]
    async fn an_error_is_not_kept() {
        let cache = RefreshedCache::new(1, LONG);
        let failed = cache.get((), async { Err(ServiceError::stopping()) }).await;
        assert!(failed.is_err());
        assert_eq!(*cache.get((), async { Ok(2) }).await.unwrap(), 2);
    }
}
