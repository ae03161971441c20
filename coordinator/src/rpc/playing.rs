//! What the workers play that are connected to this coordinator: the leases they were handed, or
//! renewed, and have not ended. It is for people to look at; whether a lease holds the database
//! alone knows.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arbiter_proto::ids::{Lease, WorkerId};

/// Which worker has which leases.
#[derive(Clone, Debug, Default)]
pub struct Playing(Arc<Mutex<HashMap<WorkerId, HashSet<Lease>>>>);

impl Playing {
    fn leases(&self) -> MutexGuard<'_, HashMap<WorkerId, HashSet<Lease>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has these leases.
    pub(super) fn begin(&self, worker: WorkerId, leases: &[Lease]) {
        self.leases().entry(worker).or_default().extend(leases);
    }

    /// A worker has none of these leases any more.
    pub(super) fn end(&self, worker: WorkerId, leases: &[Lease]) {
        if let Some(held) = self.leases().get_mut(&worker) {
            held.retain(|lease| !leases.contains(lease));
        }
    }

    /// A worker has left: it will renew what it plays where it comes back.
    pub(super) fn leave(&self, worker: WorkerId) {
        self.leases().remove(&worker);
    }

    /// Which leases the workers have, as far as is known here.
    pub(crate) fn all(&self) -> Vec<(WorkerId, Lease)> {
        let leases = self.leases();
        let held = leases.iter().flat_map(|(worker, held)| held.iter().map(|one| (*worker, *one)));
        held.collect()
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::{Attempt, VersionId};

    use super::*;

    #[test]
    fn leases_begin_and_end() {
        let playing = Playing::default();
        let lease = |version| Lease::of_trial(VersionId(version), Attempt(1));
        let (one, other) = (WorkerId(1), WorkerId(2));
        playing.begin(one, &[lease(1), lease(2)]);
        playing.begin(other, &[lease(3)]);
        playing.begin(one, &[lease(2)]);
        playing.end(one, &[lease(1), lease(9)]);
        playing.end(WorkerId(7), &[lease(3)]);
        let mut all = playing.all();
        all.sort_by_key(|(worker, _)| *worker);
        assert_eq!(all, [(one, lease(2)), (other, lease(3))]);
        playing.leave(other);
        assert_eq!(playing.all(), [(one, lease(2))]);
    }
}
