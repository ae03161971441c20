//! The active leases of the workers that are connected to this coordinator. They are only
//! displayed. The database decides whether a lease is valid.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::ids::{Lease, WorkerId};

/// A stream of a worker. A worker that reconnects opens a new stream, perhaps before the
/// coordinator detects the end of the old stream.
pub(crate) type WorkerStream = (WorkerId, i32);

/// The active leases by stream.
#[derive(Clone, Debug, Default)]
pub struct ActiveLeases(Arc<Mutex<HashMap<WorkerStream, HashSet<Lease>>>>);

impl ActiveLeases {
    fn leases(&self) -> MutexGuard<'_, HashMap<WorkerStream, HashSet<Lease>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds leases that a worker got or renewed.
    pub(crate) fn add(&self, stream: WorkerStream, leases: &[Lease]) {
        self.leases().entry(stream).or_default().extend(leases);
    }

    /// Removes leases that a worker no longer has.
    pub(crate) fn remove(&self, stream: WorkerStream, leases: &[Lease]) {
        if let Some(active) = self.leases().get_mut(&stream) {
            for lease in leases {
                active.remove(lease);
            }
        }
    }

    /// The leases of a stream.
    pub(crate) fn of(&self, stream: WorkerStream) -> Vec<Lease> {
        self.leases().get(&stream).into_iter().flatten().copied().collect()
    }

    /// Removes a stream that has ended. Its worker renews its leases when it reconnects.
    pub(crate) fn remove_stream(&self, stream: WorkerStream) {
        self.leases().remove(&stream);
    }

    /// All active leases, with their workers.
    pub(crate) fn all(&self) -> HashSet<(WorkerId, Lease)> {
        let leases = self.leases();
        let with_workers = leases
            .iter()
            .flat_map(|((worker, _), leases)| leases.iter().map(|lease| (*worker, *lease)));
        with_workers.collect()
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::{Attempt, VersionId};

    use super::*;

    #[test]
    fn leases_are_added_and_removed() {
        let active = ActiveLeases::default();
        let lease = |version| Lease::of_trial(VersionId(version), Attempt(1));
        let one = WorkerId(1);
        let other = WorkerId(2);
        active.add((one, 1), &[lease(1), lease(2)]);
        active.add((other, 1), &[lease(3)]);
        active.add((one, 1), &[lease(2)]);
        active.remove((one, 1), &[lease(1), lease(9)]);
        active.remove((WorkerId(7), 1), &[lease(3)]);
        assert_eq!(active.all(), HashSet::from([(one, lease(2)), (other, lease(3))]));
        // The worker reconnects before the coordinator detects the end of its old stream.
        active.add((other, 2), &[lease(3), lease(4)]);
        active.remove_stream((other, 1));
        let expected = [(one, lease(2)), (other, lease(3)), (other, lease(4))];
        assert_eq!(active.all(), HashSet::from(expected));
    }
}
