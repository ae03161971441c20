//! How many leases a worker may give back. Giving back is no fault and costs its match nothing, so a
//! worker that did nothing else could keep a tournament from being played. A worker that gives back
//! more than four times its slots in a minute gets nothing to do until that is made up for.
//!
//! The rule is the generic cell rate algorithm (ITU-T I.371): each lease that is given back puts off
//! the time up to which the worker has used its allowance.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arbiter_proto::ids::WorkerId;
use tokio::time::Instant;

/// The time in which a worker may give back its allowance in one go.
const WINDOW: Duration = Duration::from_secs(60);
/// How many leases a slot may give back in that time.
const PER_SLOT: u32 = 4;
/// A worker has the allowance of so many slots at least.
const LEAST_SLOTS: u32 = 16;
/// Workers that are remembered before those are forgotten that owe nothing.
const REMEMBERED: usize = 10_000;

/// What workers have used of their allowances: until when, for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returns(Arc<Mutex<HashMap<WorkerId, Instant>>>);

impl Returns {
    /// Takes note that a worker with so many slots gave back so many leases; how long it gets
    /// nothing to do, if it has none left.
    pub(crate) fn charge(
        &self,
        worker: WorkerId,
        slots: u32,
        leases: usize,
        now: Instant,
    ) -> Option<Duration> {
        let allowance = PER_SLOT * slots.max(LEAST_SLOTS);
        let leases = u32::try_from(leases).unwrap_or(u32::MAX);
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= REMEMBERED {
            used.retain(|_, until| *until > now);
        }
        let until = used.entry(worker).or_insert(now);
        *until = (*until).max(now) + (WINDOW / allowance).saturating_mul(leases);
        Some(wait(*until, now)).filter(|wait| !wait.is_zero())
    }

    /// How long a worker gets nothing to do.
    pub(crate) fn wait(&self, worker: WorkerId, now: Instant) -> Duration {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.get(&worker).map_or(Duration::ZERO, |until| wait(*until, now))
    }
}

fn wait(until: Instant, now: Instant) -> Duration {
    until.saturating_duration_since(now).saturating_sub(WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_gives_back_too_much_waits() {
        let returns = Returns::default();
        let worker = WorkerId(1);
        let now = Instant::now();
        assert_eq!(returns.charge(worker, 1, 64, now), None);
        assert_eq!(returns.wait(worker, now), Duration::ZERO);
        assert_eq!(returns.charge(worker, 1, 64, now), Some(WINDOW));
        assert_eq!(returns.wait(WorkerId(2), now), Duration::ZERO);
        let later = now + WINDOW;
        assert_eq!(returns.wait(worker, later), Duration::ZERO);
        assert_eq!(returns.charge(worker, 1, 16, later), Some(WINDOW / 4));
        assert_eq!(returns.charge(WorkerId(3), 4096, 4096, now), None, "it may stop at any time");
    }
}
