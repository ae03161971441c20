//! Reports of shadow matches.

use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::v1::{self, Verdict};
use tokio::time::Instant;
use tonic::Status;

use super::Shared;
use super::status::database;
use super::worker::fate;
use crate::match_audit::shadow;
use crate::tournament::report;

impl Shared {
    /// Compares a second play with the first one.
    pub(super) async fn end_shadow(
        &self,
        worker: WorkerId,
        lease: Lease,
        message: v1::Report,
        came: Instant,
    ) -> Result<Verdict, Status> {
        let report = match report::read(worker, message, self.now()) {
            Ok(report) => report,
            Err(error) => {
                let reason = format!("its report means nothing: {error}");
                return self.malformed(worker, lease, reason, came).await;
            }
        };
        let judged = shadow::judge(&self.pool, &self.handout, &report, self.now()).await;
        let verdict = judged.map_err(|error| Status::unavailable(error.to_string()))?;
        if verdict == crate::queue::Verdict::Malformed {
            let reason = "its report does not tell of its match".to_owned();
            return self.malformed(worker, lease, reason, came).await;
        }
        self.suspensions.refresh(&self.pool).await.map_err(database)?;
        self.queue.metrics().judged(lease, verdict, came);
        Ok(Verdict { lease: Some(lease.into()), fate: fate(verdict).into() })
    }
}
