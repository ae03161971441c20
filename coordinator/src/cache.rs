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

#[cfg(test)]
mod tests {
    use super::*;

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
