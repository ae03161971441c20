//! A bounded cache for expensive results.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An LRU cache: when the total weight exceeds the capacity, the least recently used values are
/// evicted. Clones share their entries.
#[derive(Debug)]
pub struct Cache<K, V> {
    capacity: usize,
    weigh: fn(&V) -> usize,
    entries: Arc<Mutex<Entries<K, V>>>,
}

#[derive(Debug)]
struct Entries<K, V> {
    by_key: HashMap<K, Entry<V>>,
    /// How often values were used.
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    inserted_at: Instant,
    /// The value of `Entries::uses` at its last use.
    last_use: u64,
    value: Arc<V>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { capacity: self.capacity, weigh: self.weigh, entries: Arc::clone(&self.entries) }
    }
}

impl<K: Clone + Eq + Hash, V> Cache<K, V> {
    /// A cache of at most `capacity` values.
    pub fn new(capacity: usize) -> Self {
        Self::weighted(capacity, |_| 1)
    }

    /// A cache whose values weigh at most `capacity` in total. A heavier value is not stored.
    pub fn weighted(capacity: usize, weigh: fn(&V) -> usize) -> Self {
        let entries = Entries { by_key: HashMap::new(), uses: 0 };
        Self { capacity, weigh, entries: Arc::new(Mutex::new(entries)) }
    }

    /// The value of a key, if it was inserted at most `max_age` ago.
    pub fn get(&self, key: &K, max_age: Option<Duration>) -> Option<Arc<V>> {
        let is_fresh =
            |entry: &Entry<V>| max_age.is_none_or(|age| entry.inserted_at.elapsed() <= age);
        self.entries().get(key, is_fresh)
    }

    /// The value of a key. If there is none, `make` is called and its value inserted.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut entries = self.entries();
        match entries.get(&key, |_| true) {
            Some(value) => value,
            None => self.insert_into(&mut entries, key, make()),
        }
    }

    /// Inserts a value. It replaces an earlier one of the same key.
    pub fn insert(&self, key: K, value: V) -> Arc<V> {
        self.insert_into(&mut self.entries(), key, value)
    }

    /// Removes the value of a key.
    pub(crate) fn remove(&self, key: &K) {
        self.entries().by_key.remove(key);
    }

    fn insert_into(&self, entries: &mut Entries<K, V>, key: K, value: V) -> Arc<V> {
        let value = Arc::new(value);
        entries.uses += 1;
        let entry = Entry {
            inserted_at: Instant::now(),
            last_use: entries.uses,
            value: Arc::clone(&value),
        };
        entries.by_key.insert(key, entry);
        while entries.weight(self.weigh) > self.capacity {
            let oldest = entries.by_key.iter().min_by_key(|(_, entry)| entry.last_use);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { break };
            entries.by_key.remove(&oldest);
        }
        value
    }

    /// The total weight of all values.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> usize {
        self.entries().weight(self.weigh)
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash, V> Entries<K, V> {
    fn get(&mut self, key: &K, is_usable: impl FnOnce(&Entry<V>) -> bool) -> Option<Arc<V>> {
        let entry = self.by_key.get_mut(key).filter(|entry| is_usable(entry))?;
        self.uses += 1;
        entry.last_use = self.uses;
        Some(Arc::clone(&entry.value))
    }

    fn weight(&self, weigh: fn(&V) -> usize) -> usize {
        self.by_key.values().map(|entry| weigh(&entry.value)).sum()
    }
}

/// A cache of values that one task reads for all that wait for them.
#[derive(Debug)]
pub struct SharedReads<K, V> {
    values: Cache<K, V>,
    /// Locked while the value of a key is read.
    reading: Cache<K, tokio::sync::Mutex<()>>,
}

impl<K: Clone + Eq + Hash, V> SharedReads<K, V> {
    /// An empty cache of at most `capacity` values.
    pub fn new(capacity: usize) -> Self {
        Self { values: Cache::new(capacity), reading: Cache::new(capacity) }
    }

    /// The value of a key, if it was read.
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.values.get(key, None)
    }

    /// The value of a key, which `read` reads if no other task does. After a failed read all that
    /// waited for it read at once: none of them waits for the failures of the others.
    ///
    /// # Errors
    /// The error of `read`.
    pub async fn get_or_read<E>(
        &self,
        key: K,
        read: impl Future<Output = Result<V, E>>,
    ) -> Result<Arc<V>, E> {
        if let Some(value) = self.get(&key) {
            return Ok(value);
        }
        let reading = self.reading.get_or_insert_with(key.clone(), tokio::sync::Mutex::default);
        let turn = reading.try_lock();
        if turn.is_err() {
            drop(reading.lock().await);
        }
        match self.get(&key) {
            Some(value) => Ok(value),
            None => Ok(self.values.insert(key, read.await?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::yield_now;

    use super::*;

    #[tokio::test]
    async fn a_value_is_read_once_for_all_that_wait_for_it() {
        let cache = SharedReads::new(2);
        let reads = AtomicUsize::new(0);
        let read = async || {
            yield_now().await;
            Ok::<_, ()>(reads.fetch_add(1, Ordering::Relaxed))
        };
        let (one, two, other) = tokio::join!(
            cache.get_or_read(1, read()),
            cache.get_or_read(1, read()),
            cache.get_or_read(2, read())
        );
        assert!(one.is_ok() && one == two && other.is_ok(), "{one:?}, {two:?}, {other:?}");
        assert_eq!(reads.into_inner(), 2, "once for each key");
    }

    #[tokio::test]
    async fn a_failed_read_fails_for_no_other_task() {
        let cache = SharedReads::new(2);
        let failing = async {
            yield_now().await;
            Err::<i32, _>("torn")
        };
        let (failed, read) = tokio::join!(
            cache.get_or_read(1, failing),
            cache.get_or_read(1, async { Ok::<_, &str>(7) })
        );
        assert_eq!((failed, read), (Err("torn"), Ok(Arc::new(7))));
        assert_eq!(cache.get(&1).as_deref(), Some(&7));
    }

    #[test]
    fn the_least_recently_used_value_is_evicted() {
        let cache = Cache::new(2);
        for key in [1, 2, 1, 3] {
            cache.insert(key, key * 10);
        }
        assert_eq!(cache.get(&2, None), None);
        assert_eq!(cache.get(&1, None).as_deref(), Some(&10));
        assert_eq!(cache.get(&3, Some(Duration::from_secs(3600))).as_deref(), Some(&30));
        assert_eq!(cache.get(&3, Some(Duration::ZERO)), None);
        assert_eq!(*cache.get_or_insert_with(3, || 0), 30);
        assert_eq!(*cache.get_or_insert_with(4, || 40), 40);
        assert_eq!(cache.get(&4, None).as_deref(), Some(&40));
        assert_eq!(cache.get(&1, None), None, "entry 1 was the least recently used one");
    }

    #[test]
    fn the_total_weight_stays_within_the_capacity() {
        let cache = Cache::weighted(10, |weight| *weight);
        for (key, weight) in [(1, 4), (2, 4), (3, 2)] {
            assert_eq!(*cache.insert(key, weight), weight);
        }
        assert_eq!(cache.weight(), 10);
        cache.insert(1, 5);
        assert_eq!((cache.get(&2, None), cache.weight()), (None, 7));
        cache.insert(4, 11);
        assert_eq!(cache.weight(), 0, "a value that is too heavy is not stored");
    }
}
