//! Limits how many leases a worker may return. A returned lease does not count as a fault. So
//! without a limit one worker could take and return leases forever, and the tournament would not
//! progress. A worker that returns more than four leases per slot in a minute gets no work for a
//! time.
//!
//! The rule is the generic cell rate algorithm (ITU-T I.371). For each worker there is a time up to
//! which it has used its allowance. Each returned lease moves this time forward.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arbiter_proto::ids::WorkerId;
use tokio::time::Instant;

/// The time in which a worker may use its whole allowance.
const WINDOW: Duration = Duration::from_secs(60);
/// How many leases a slot may return in [`WINDOW`].
const LEASES_PER_SLOT: u32 = 4;
/// Every worker has at least the allowance of this many slots.
const MIN_SLOTS: u32 = 16;
/// Number of workers in memory at which those with an unused allowance are removed.
const MAX_WORKERS: usize = 10_000;

/// For each worker, the time up to which it has used its allowance.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseReturnLimiter(Arc<Mutex<HashMap<WorkerId, Instant>>>);

impl LeaseReturnLimiter {
    /// Records that a worker with this many slots returned this many leases. If its allowance is
    /// used up, returns how long the worker gets no work.
    pub(crate) fn record(
        &self,
        worker: WorkerId,
        slots: u32,
        leases: usize,
        now: Instant,
    ) -> Option<Duration> {
        let allowance = LEASES_PER_SLOT * slots.max(MIN_SLOTS);
        let leases = u32::try_from(leases).unwrap_or(u32::MAX);
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_WORKERS {
            used.retain(|_, until| *until > now);
        }
        let until = used.entry(worker).or_insert(now);
        *until = (*until).max(now) + (WINDOW / allowance).saturating_mul(leases);
        Some(wait(*until, now)).filter(|wait| !wait.is_zero())
    }

    /// How much longer a worker gets no work.
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
    fn a_worker_that_returns_too_many_leases_waits() {
        let limiter = LeaseReturnLimiter::default();
        let worker = WorkerId(1);
        let now = Instant::now();
        assert_eq!(limiter.record(worker, 1, 64, now), None);
        assert_eq!(limiter.wait(worker, now), Duration::ZERO);
        assert_eq!(limiter.record(worker, 1, 64, now), Some(WINDOW));
        assert_eq!(limiter.wait(WorkerId(2), now), Duration::ZERO);
        let later = now + WINDOW;
        assert_eq!(limiter.wait(worker, later), Duration::ZERO);
        assert_eq!(limiter.record(worker, 1, 16, later), Some(WINDOW / 4));
        assert_eq!(limiter.record(WorkerId(3), 4096, 4096, now), None, "a full worker may stop");
    }
}
