//! Work that is cut into parts, so that one that fails or takes long holds up no other.
//!
//! Each part has at most one task at a time. A part that failed rests, longer from failure to
//! failure, until it has succeeded again.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::task::{self, JoinError, JoinSet};
use tokio::time::Instant;

use crate::backoff::Rests;

/// The parts of some work, by a key each, and what their tasks return.
#[derive(Debug)]
pub(crate) struct KeyedTasks<K, T> {
    working: JoinSet<T>,
    under_way: HashMap<task::Id, K>,
    rests: Rests<K>,
}

impl<K: Copy + Eq + Hash, T: Send + 'static> KeyedTasks<K, T> {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self { working: JoinSet::new(), under_way: HashMap::new(), rests: Rests::new() }
    }

    /// Whether a part may be worked on: it is not, and does not rest.
    pub(crate) fn is_free(&self, part: K) -> bool {
        !self.rests.rests(part) && self.under_way.values().all(|busy| *busy != part)
    }

    /// Begins to work on a part.
    pub(crate) fn begin(&mut self, part: K, work: impl Future<Output = T> + Send + 'static) {
        self.under_way.insert(self.working.spawn(work).id(), part);
    }

    /// Waits for the end of the work on a part; nothing if there is no such work. A caller that stops
    /// waiting misses nothing.
    pub(crate) async fn next(&mut self) -> Option<(K, Result<T, JoinError>)> {
        let (id, ended) = match self.working.join_next_with_id().await? {
            Ok((id, returned)) => (id, Ok(returned)),
            Err(panicked) => (panicked.id(), Err(panicked)),
        };
        self.under_way.remove(&id).map(|part| (part, ended))
    }

    /// The work on a part failed: how long it rests.
    pub(crate) fn fail(&mut self, part: K) -> Duration {
        self.rests.fail(part)
    }

    /// The work on a part succeeded. Its last failure is remembered for a while.
    pub(crate) fn succeed(&mut self, part: K, remembered: Duration) {
        self.rests.succeed(part, remembered);
    }

    /// When a part failed last, as long as that is remembered.
    pub(crate) fn failed_at(&self, part: K) -> Option<Instant> {
        self.rests.failed_at(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_fails_rests_and_holds_up_no_other() {
        let mut parts = KeyedTasks::new();
        parts.begin(1, std::future::ready(true));
        assert!(!parts.is_free(1) && parts.is_free(2));
        let (part, ended) = parts.next().await.unwrap();
        assert_eq!((part, ended.unwrap()), (1, true));
        let rest = parts.fail(1);
        assert!(!parts.is_free(1) && parts.is_free(2));
        assert!(parts.fail(1) > rest);
        parts.succeed(1, Duration::from_secs(60));
        assert!(parts.failed_at(1).is_some());
        assert_eq!(parts.fail(1), rest, "it begins again with the shortest rest");
        parts.succeed(1, Duration::ZERO);
        assert!(parts.failed_at(1).is_none() && parts.is_free(1));
    }

    #[tokio::test]
    async fn a_part_whose_task_panics_is_free_again() {
        let mut parts: KeyedTasks<u8, ()> = KeyedTasks::new();
        parts.begin(1, async { panic!("as a test wants") });
        let (part, ended) = parts.next().await.unwrap();
        assert!(part == 1 && ended.is_err() && parts.is_free(1));
    }
}
