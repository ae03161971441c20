//! Delivery of reports: handles the coordinator's acknowledgements, and sends postponed reports
//! again later.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::Lease;
use arbiter_proto::v1::{ReportResponse, ReportStatus};
use tokio::time::Instant;
use tracing::{error, warn};

use crate::backoff::Backoff;
use crate::metrics::Metrics;
use crate::spool::Spool;

/// First wait before a postponed report is sent again.
const MIN_RETRY: Duration = Duration::from_millis(500);

/// Longest wait before a postponed report is sent again.
const MAX_RETRY: Duration = Duration::from_secs(10);

/// Tracks the reports of a worker until they are acknowledged.
#[derive(Debug)]
pub(super) struct ReportDelivery {
    spool: Arc<Spool>,
    metrics: Arc<Metrics>,
    /// Reports to send again.
    postponed: BTreeSet<Lease>,
    /// Time at which to send them. `None` if there are no postponed reports.
    pub(super) due: Option<Instant>,
    backoff: Backoff,
}

impl ReportDelivery {
    pub(super) fn new(spool: Arc<Spool>, metrics: Arc<Metrics>) -> Self {
        let backoff = Backoff::new("postponed reports", MIN_RETRY, MAX_RETRY);
        Self { spool, metrics, postponed: BTreeSet::new(), due: None, backoff }
    }

    /// Takes the reports that are due to be sent again.
    pub(super) fn take_due(&mut self) -> BTreeSet<Lease> {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return BTreeSet::new();
        }
        self.due = None;
        std::mem::take(&mut self.postponed)
    }

    /// Handles an acknowledgement. Deletes a report that the coordinator stored or no longer needs.
    pub(super) fn handle(&mut self, ReportResponse { lease, status, reason }: ReportResponse) {
        let lease = lease.and_then(|lease| Lease::try_from(lease).ok());
        let Some(lease) = lease.filter(|lease| self.spool.contains(*lease)) else { return };
        let status = ReportStatus::try_from(status).unwrap_or(ReportStatus::Unspecified);
        self.metrics.record_acknowledgement(status);
        match status {
            ReportStatus::Accepted | ReportStatus::Duplicate => {
                self.spool.remove(lease);
                self.backoff.reset();
            }
            ReportStatus::Late => {
                self.spool.remove(lease);
                warn!(%lease, "the report was late and does not count");
            }
            ReportStatus::Refused => match self.spool.move_to_refused(lease, &reason) {
                Ok(path) => error!(%lease, reason, path = %path.display(), "report refused"),
                Err(error) => error!(%lease, reason, %error, "cannot move a refused report"),
            },
            // A newer coordinator may send an unknown status. Do not delete the report then.
            ReportStatus::Postponed | ReportStatus::Unspecified => self.postpone(lease, &reason),
        }
    }

    /// Schedules a report to be sent again, together with others that are postponed until then.
    fn postpone(&mut self, lease: Lease, reason: &str) {
        self.postponed.insert(lease);
        if self.due.is_none() {
            let wait = self.backoff.next();
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            warn!(%lease, reason, wait_ms, "report postponed; it will be sent again");
            self.due = Some(Instant::now() + wait);
        }
    }
}
