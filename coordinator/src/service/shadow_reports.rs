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
        let compared =
            shadow_play::judge(&self.service.pool, &self.assignments, &report, self.service.now())
                .await;
        let status = match compared {
            Ok(status) => status,
            Err(error) => return Ok(self.postpone(worker, lease, &error)),
        };
        if status == queue::ReportStatus::Malformed {
            let reason = "its report is not about its match".to_owned();
            return self.refuse(worker, lease, reason, arrived).await;
        }
        // If it fails, the next periodic refresh finds the workers that this suspends.
        drop(self.service.suspensions.refresh(&self.service.pool).await);
        self.service.metrics().record_report(lease, status, arrived);
        Ok(report_status(lease, status))
    }
}
