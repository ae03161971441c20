//! What becomes of reports: the coordinator's verdicts, and when a report is sent again that the
//! coordinator could not store.

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

/// After how long a report is sent again that the coordinator could not store: at first, ...
const SHORTEST: Duration = Duration::from_millis(500);

/// ... and while nothing can be stored.
const LONGEST: Duration = Duration::from_secs(10);

/// The verdicts on a worker's reports.
#[derive(Debug)]
pub(super) struct Verdicts {
    spool: Arc<Spool>,
    metrics: Arc<Metrics>,
    /// Reports that are to be sent again.
    postponed: BTreeSet<Lease>,
    /// When, if there are some.
    pub(super) due: Option<Instant>,
    backoff: Backoff,
}

impl Verdicts {
    pub(super) fn new(spool: Arc<Spool>, metrics: Arc<Metrics>) -> Self {
        let backoff = Backoff::new("postponed reports", SHORTEST, LONGEST);
        Self { spool, metrics, postponed: BTreeSet::new(), due: None, backoff }
    }

    /// The reports that are to be sent again now.
    pub(super) fn take_due(&mut self) -> BTreeSet<Lease> {
        if self.due.is_none_or(|due| due > Instant::now()) {
            return BTreeSet::new();
        }
        self.due = None;
        std::mem::take(&mut self.postponed)
    }

    /// Takes note of a verdict: a report is deleted if the coordinator has it or needs it no more.
    pub(super) fn hear(&mut self, ReportResponse { lease, status, reason }: ReportResponse) {
        let lease = lease.and_then(|lease| Lease::try_from(lease).ok());
        let Some(lease) = lease.filter(|lease| self.spool.has(*lease)) else { return };
        let status = ReportStatus::try_from(status).unwrap_or(ReportStatus::Unspecified);
        self.metrics.judged(status);
        match status {
            ReportStatus::Accepted | ReportStatus::Duplicate => {
                self.spool.forget(lease);
                self.backoff.reset();
            }
            ReportStatus::Late => {
                self.spool.forget(lease);
                warn!(%lease, "a report came too late: it counts for nothing");
            }
            ReportStatus::Refused => match self.spool.refuse(lease, &reason) {
                Ok(path) => error!(%lease, reason, kept = %path.display(), "a report was refused"),
                Err(error) => error!(%lease, reason, %error, "a refused report cannot be moved"),
            },
            // A fate of a later version is no reason to throw a report away.
            ReportStatus::Postponed | ReportStatus::Unspecified => self.postpone(lease, &reason),
        }
    }

    /// A report is sent again after a while, together with others that come until then.
    fn postpone(&mut self, lease: Lease, reason: &str) {
        self.postponed.insert(lease);
        if self.due.is_none() {
            let wait = self.backoff.next();
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            warn!(%lease, reason, wait_ms, "a report cannot be stored yet; it is sent again");
            self.due = Some(Instant::now() + wait);
        }
    }
}
