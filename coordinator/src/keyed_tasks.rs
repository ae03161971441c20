//! Background tasks by key, so that a slow or failing key does not delay the others.
//!
//! Each key has at most one task at a time. After a failure a key waits before it is retried. The
//! delay doubles with each failure.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::task::{self, JoinError, JoinSet};

use crate::backoff::BackoffMap;

/// Running tasks by key; each returns a `T`.
#[derive(Debug)]
pub(crate) struct KeyedTasks<K, T> {
    tasks: JoinSet<T>,
    keys: HashMap<task::Id, K>,
    /// The failures of the keys.
    pub(crate) backoffs: BackoffMap<K>,
}

impl<K: Copy + Eq + Hash, T: Send + 'static> KeyedTasks<K, T> {
    /// Starts without tasks.
    pub(crate) fn new() -> Self {
        Self { tasks: JoinSet::new(), keys: HashMap::new(), backoffs: BackoffMap::new() }
    }

    /// Whether a task may be spawned for a key: it has no running task and does not wait for a
    /// retry.
    pub(crate) fn is_ready(&self, key: K) -> bool {
        !self.backoffs.is_waiting(key) && self.keys.values().all(|running| *running != key)
    }

    /// Spawns the task of a key.
    pub(crate) fn spawn(&mut self, key: K, work: impl Future<Output = T> + Send + 'static) {
        self.keys.insert(self.tasks.spawn(work).id(), key);
    }

    /// Waits for the next task that ends; `None` if no task runs. Cancel safe.
    pub(crate) async fn join_next(&mut self) -> Option<(K, Result<T, JoinError>)> {
        let (id, result) = match self.tasks.join_next_with_id().await? {
            Ok((id, output)) => (id, Ok(output)),
            Err(error) => (error.id(), Err(error)),
        };
        self.keys.remove(&id).map(|key| (key, result))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_failing_key_waits_and_delays_no_other() {
        let mut tasks = KeyedTasks::new();
        tasks.spawn(1, std::future::ready(true));
        assert!(!tasks.is_ready(1) && tasks.is_ready(2));
        let (key, result) = tasks.join_next().await.unwrap();
        assert_eq!((key, result.unwrap()), (1, true));
        let delay = tasks.backoffs.record_failure(1);
        assert!(!tasks.is_ready(1) && tasks.is_ready(2));
        assert!(tasks.backoffs.record_failure(1) > delay);
        tasks.backoffs.record_success(1, Duration::from_secs(60));
        assert!(tasks.backoffs.failed_at(1).is_some());
        assert_eq!(
            tasks.backoffs.record_failure(1),
            delay,
            "the delays start again with the shortest one"
        );
        tasks.backoffs.record_success(1, Duration::ZERO);
        assert!(tasks.backoffs.failed_at(1).is_none() && tasks.is_ready(1));
    }

    #[tokio::test]
    async fn a_key_whose_task_panics_is_ready_again() {
        let mut tasks: KeyedTasks<u8, ()> = KeyedTasks::new();
        tasks.spawn(1, async { panic!("for the test") });
        let (key, result) = tasks.join_next().await.unwrap();
        assert!(key == 1 && result.is_err() && tasks.is_ready(1));
    }
}
