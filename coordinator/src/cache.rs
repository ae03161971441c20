//! A bounded cache of what takes long to find out.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Values that weigh at most so much together: those that were not used for longest make room.
#[derive(Debug)]
pub struct Cache<K, V> {
    bound: usize,
    weigh: fn(&V) -> usize,
    entries: Arc<Mutex<Entries<K, V>>>,
}

#[derive(Debug)]
struct Entries<K, V> {
    by_key: HashMap<K, Entry<V>>,
    /// Uses so far.
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    inserted_at: Instant,
    /// The number of its last use.
    used: u64,
    value: Arc<V>,
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { bound: self.bound, weigh: self.weigh, entries: Arc::clone(&self.entries) }
    }
}

impl<K: Copy + Eq + Hash, V> Cache<K, V> {
    /// For so many values.
    pub fn new(most: usize) -> Self {
        Self::weighted(most, |_| 1)
    }

    /// For values that weigh so much together; one that is heavier is not kept.
    pub fn weighted(bound: usize, weigh: fn(&V) -> usize) -> Self {
        let entries = Entries { by_key: HashMap::new(), uses: 0 };
        Self { bound, weigh, entries: Arc::new(Mutex::new(entries)) }
    }

    /// A value, if it was inserted no longer ago than this.
    pub fn get(&self, key: K, oldest: Option<Duration>) -> Option<Arc<V>> {
        let fresh = |entry: &Entry<V>| oldest.is_none_or(|age| entry.inserted_at.elapsed() <= age);
        self.entries().get(key, fresh)
    }

    /// A value; made, unless it is there.
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let mut entries = self.entries();
        match entries.get(key, |_| true) {
            Some(value) => value,
            None => self.insert_into(&mut entries, key, make()),
        }
    }

    /// Inserts a value, in the place of an earlier one.
    pub fn insert(&self, key: K, value: V) -> Arc<V> {
        self.insert_into(&mut self.entries(), key, value)
    }

    fn insert_into(&self, entries: &mut Entries<K, V>, key: K, value: V) -> Arc<V> {
        let value = Arc::new(value);
        entries.uses += 1;
        let entry =
            Entry { inserted_at: Instant::now(), used: entries.uses, value: Arc::clone(&value) };
        entries.by_key.insert(key, entry);
        while entries.weight(self.weigh) > self.bound {
            let oldest = entries.by_key.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| *key) else { break };
            entries.by_key.remove(&oldest);
        }
        value
    }

    /// What all values weigh.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> usize {
        self.entries().weight(self.weigh)
    }

    fn entries(&self) -> MutexGuard<'_, Entries<K, V>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Copy + Eq + Hash, V> Entries<K, V> {
    fn get(&mut self, key: K, fits: impl FnOnce(&Entry<V>) -> bool) -> Option<Arc<V>> {
        let entry = self.by_key.get_mut(&key).filter(|entry| fits(entry))?;
        self.uses += 1;
        entry.used = self.uses;
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
    fn the_oldest_makes_room() {
        let cache = Cache::new(2);
        for key in [1, 2, 1, 3] {
            cache.insert(key, key * 10);
        }
        assert_eq!(cache.get(2, None), None);
        assert_eq!(cache.get(1, None).as_deref(), Some(&10));
        assert_eq!(cache.get(3, Some(Duration::from_secs(3600))).as_deref(), Some(&30));
        assert_eq!(cache.get(3, Some(Duration::ZERO)), None);
        assert_eq!(*cache.get_or_insert_with(3, || 0), 30);
        assert_eq!(*cache.get_or_insert_with(4, || 40), 40);
        assert_eq!(cache.get(4, None).as_deref(), Some(&40));
        assert_eq!(cache.get(1, None), None, "it was not used for longest");
    }

    #[test]
    fn the_weight_has_a_bound() {
        let cache = Cache::weighted(10, |weight| *weight);
        for (key, weight) in [(1, 4), (2, 4), (3, 2)] {
            assert_eq!(*cache.insert(key, weight), weight);
        }
        assert_eq!(cache.weight(), 10);
        cache.insert(1, 5);
        assert_eq!((cache.get(2, None), cache.weight()), (None, 7));
        cache.insert(4, 11);
        assert_eq!(cache.weight(), 0, "nothing makes room for what is too heavy");
    }
}
