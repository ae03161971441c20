//! Reports of shadow matches.

use arbiter_proto::v1::ReportResponse;
use tokio::time::Instant;

use super::reports::report_status;
use super::{Result, WorkerService};
use crate::match_audit::shadow_play;
use crate::queue::{self, Report};

impl WorkerService {
    /// Compares a shadow match with the match that it repeats.
    pub(super) async fn store_shadow(
        &self,
        report: Report,
        arrived: Instant,
    ) -> Result<ReportResponse> {
        let worker = report.worker;
        let lease = report.lease;
        let pool = &self.service.pool;
        let now = self.service.now();
        let checked = shadow_play::check_report(pool, &self.assignments, &report, now).await;
        let status = match checked {
            Ok(status) => status,
            Err(error) => return Ok(self.postpone(worker, lease, &error)),
        };
        if status == queue::ReportStatus::Malformed {
            let reason = "its report is not about its match".to_owned();
            return self.refuse(worker, lease, reason, arrived).await;
        }
        // The report may have suspended a worker. If this refresh fails, the next periodic one
        // succeeds soon.
        drop(self.service.suspensions.refresh(pool).await);
        self.service.metrics().record_report(lease, status, arrived);
        Ok(report_status(lease, status))
    }
}
