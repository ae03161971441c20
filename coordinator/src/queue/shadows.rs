//! Shadow matches in the queue: leased beside lots, and ended by one report that never counts.

use arbiter_proto::ids::{Lease, WorkerId};
use sqlx::Error;
use time::Duration;

use super::{Expired, Failed, Failure, Leased, Queue, again};
use crate::db::lots::LotState;
use crate::db::shadows;

/// How long a match is expected to take where nobody knows, in milliseconds.
const EXPECTED_MS: i32 = 1000;

/// A shadow match in the form of a lot of one match; nothing if the lease is of something else.
pub(super) fn as_lot(lease: Lease, holder: WorkerId) -> Option<Leased> {
    let first = lease.shadow()?.number;
    // Its report is compared with the first one, which says how wide the scores are.
    let width = 0;
    let expected_ms = EXPECTED_MS;
    Some(Leased { lease, first, count: 1, width, expected_ms, holder: Some(holder) })
}

impl Queue {
    /// Renews those of these leases that are of shadow matches and still hold.
    pub(super) async fn renew_shadows(
        &self,
        by: Option<WorkerId>,
        leases: &[Lease],
        lease: Duration,
    ) -> Result<Vec<Lease>, Error> {
        let leases = of_shadows(leases.iter().copied());
        if leases.is_empty() {
            return Ok(leases);
        }
        again(|| shadows::renew(&self.pool, by, &leases, lease)).await
    }

    /// Takes those of these leases back that are of shadow matches and still hold.
    pub(super) async fn give_back_shadows(
        &self,
        by: Option<WorkerId>,
        leases: &[Lease],
    ) -> Result<Vec<Lease>, Error> {
        let leases = of_shadows(leases.iter().copied());
        if leases.is_empty() {
            return Ok(leases);
        }
        again(|| shadows::give_back(&self.pool, by, &leases)).await
    }

    /// Takes note of attempts at shadow matches that failed.
    pub(super) async fn fail_shadows(&self, failures: &[Failure]) -> Result<Vec<Failed>, Error> {
        let mut failed = Vec::new();
        for Failure { lease, by, .. } in failures {
            let leases = of_shadows([*lease].into_iter());
            if !leases.is_empty() {
                failed.extend(self.fail_these(*by, &leases).await?);
            }
        }
        Ok(failed)
    }

    /// Takes leases of shadow matches away whose deadline has passed.
    pub(crate) async fn expire_shadows(&self) -> Result<Expired, Error> {
        let overdue = again(|| shadows::overdue(&self.pool)).await?;
        if overdue.is_empty() {
            return Ok(Expired::default());
        }
        let failed = self.fail_these(None, &overdue).await?;
        self.metrics.expired(failed.len());
        Ok(Expired { failed, woken: 0 })
    }

    async fn fail_these(
        &self,
        by: Option<WorkerId>,
        leases: &[Lease],
    ) -> Result<Vec<Failed>, Error> {
        let most = self.terms.patience.faults;
        let held = again(|| shadows::fail(&self.pool, by, leases, most)).await?;
        Ok(held.into_iter().map(|lease| Failed { lease, state: LotState::Pending }).collect())
    }
}

/// Those leases that are of shadow matches.
fn of_shadows(leases: impl Iterator<Item = Lease>) -> Vec<Lease> {
    leases.filter(|lease| lease.shadow().is_some()).collect()
}
