//! What the workers play that are connected to this coordinator: the leases they were handed, or
//! renewed, and have not ended. It is for people to look at; whether a lease holds the database
//! alone knows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::ids::{Lease, WorkerId};

/// A stream of a worker: a worker that comes back opens another one, and the end of the older one
/// may be noticed after that.
pub(crate) type WorkerStream = (WorkerId, i32);

/// Over which stream which leases are held.
#[derive(Clone, Debug, Default)]
pub struct ActiveLeases(Arc<Mutex<HashMap<WorkerStream, HashSet<Lease>>>>);

impl ActiveLeases {
    fn leases(&self) -> MutexGuard<'_, HashMap<WorkerStream, HashSet<Lease>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has these leases.
    pub(crate) fn begin(&self, stream: WorkerStream, leases: &[Lease]) {
        self.leases().entry(stream).or_default().extend(leases);
    }

    /// A worker has none of these leases any more.
    pub(crate) fn end(&self, stream: WorkerStream, leases: &[Lease]) {
        if let Some(held) = self.leases().get_mut(&stream) {
            for lease in leases {
                held.remove(lease);
            }
        }
    }

    /// The leases that are held over a stream.
    pub(crate) fn of(&self, stream: WorkerStream) -> Vec<Lease> {
        self.leases().get(&stream).into_iter().flatten().copied().collect()
    }

    /// A worker has left: it will renew what it plays where it comes back.
    pub(crate) fn leave(&self, stream: WorkerStream) {
        self.leases().remove(&stream);
    }

    /// Which leases the workers have, as far as is known here.
    pub(crate) fn all(&self) -> HashSet<(WorkerId, Lease)> {
        let leases = self.leases();
        let held =
            leases.iter().flat_map(|((worker, _), held)| held.iter().map(|one| (*worker, *one)));
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::{Attempt, VersionId};

    use super::*;

    #[test]
    fn leases_begin_and_end() {
        let playing = ActiveLeases::default();
        let lease = |version| Lease::of_trial(VersionId(version), Attempt(1));
        let (one, other) = (WorkerId(1), WorkerId(2));
        playing.begin((one, 1), &[lease(1), lease(2)]);
        playing.begin((other, 1), &[lease(3)]);
        playing.begin((one, 1), &[lease(2)]);
        playing.end((one, 1), &[lease(1), lease(9)]);
        playing.end((WorkerId(7), 1), &[lease(3)]);
        assert_eq!(playing.all(), HashSet::from([(one, lease(2)), (other, lease(3))]));
        // It is back before it is noticed that it was gone.
        playing.begin((other, 2), &[lease(3), lease(4)]);
        playing.leave((other, 1));
        let held = [(one, lease(2)), (other, lease(3)), (other, lease(4))];
        assert_eq!(playing.all(), HashSet::from(held));
    }
}
