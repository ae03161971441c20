//! What takes long to find out, kept in memory once somebody has asked.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The answers to so many questions at most: the oldest makes room.
#[derive(Debug)]
pub struct Kept<K, V> {
    most: usize,
    answers: Arc<Mutex<HashMap<K, Answer<V>>>>,
}

/// An answer, and when it was found.
#[derive(Debug)]
struct Answer<V> {
    at: Instant,
    value: Arc<V>,
}

impl<K, V> Clone for Kept<K, V> {
    fn clone(&self) -> Self {
        Self { most: self.most, answers: Arc::clone(&self.answers) }
    }
}

impl<K: Copy + Eq + Hash, V> Kept<K, V> {
    /// Nothing yet, and room for so many.
    pub fn new(most: usize) -> Self {
        Self { most, answers: Arc::default() }
    }

    /// What was found, if it is no older than this where that matters.
    pub fn get(&self, key: K, oldest: Option<Duration>) -> Option<Arc<V>> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.get(&key)?;
        let good = oldest.is_none_or(|oldest| answer.at.elapsed() <= oldest);
        good.then(|| Arc::clone(&answer.value))
    }

    /// What was found, or the beginning of a search that is kept from now on.
    pub fn get_or_begin(&self, key: K, begin: impl FnOnce() -> V) -> Arc<V> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        match answers.get(&key) {
            Some(answer) => Arc::clone(&answer.value),
            None => self.insert(&mut answers, key, begin()),
        }
    }

    /// Keeps what was found.
    pub fn put(&self, key: K, value: V) -> Arc<V> {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.insert(&mut answers, key, value)
    }

    /// Keeps an answer; the oldest makes room.
    fn insert(&self, answers: &mut HashMap<K, Answer<V>>, key: K, value: V) -> Arc<V> {
        if answers.len() >= self.most && !answers.contains_key(&key) {
            let oldest = answers.iter().min_by_key(|(_, answer)| answer.at).map(|(key, _)| *key);
            oldest.and_then(|oldest| answers.remove(&oldest));
        }
        let value = Arc::new(value);
        answers.insert(key, Answer { at: Instant::now(), value: Arc::clone(&value) });
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let kept = Kept::new(2);
        for key in [1, 2, 1, 3] {
            kept.put(key, key * 10);
        }
        assert_eq!(kept.get(2, None), None);
        assert_eq!(kept.get(1, None).as_deref(), Some(&10));
        assert_eq!(kept.get(3, Some(Duration::from_secs(3600))).as_deref(), Some(&30));
        assert_eq!(kept.get(3, Some(Duration::ZERO)), None);
        assert_eq!(*kept.get_or_begin(3, || 0), 30);
        assert_eq!(*kept.get_or_begin(4, || 40), 40);
        assert_eq!(kept.get(4, None).as_deref(), Some(&40));
    }
}
