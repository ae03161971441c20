//! Reports of shadow matches.

use arbiter_proto::v1::ReportResponse;
use tokio::time::Instant;

use super::reports::judged;
use super::{Result, WorkerService};
use crate::match_audit::shadow_play;
use crate::queue::{self, Report};

impl WorkerService {
    /// Compares a second play with the first one.
    pub(super) async fn end_shadow(&self, report: Report, came: Instant) -> Result<ReportResponse> {
        let (worker, lease) = (report.worker, report.lease);
        let compared =
            shadow_play::judge(&self.service.pool, &self.handout, &report, self.service.now())
                .await;
        let verdict = match compared {
            Ok(verdict) => verdict,
            Err(error) => return Ok(self.postponed(worker, lease, &error)),
        };
        if verdict == queue::Verdict::Malformed {
            let reason = "its report does not tell of its match".to_owned();
            return self.malformed(worker, lease, reason, came).await;
        }
        // Who is suspended by it is known a moment later at the latest.
        drop(self.service.suspensions.refresh(&self.service.pool).await);
        self.service.metrics().record_report(lease, verdict, came);
        Ok(judged(lease, verdict))
    }
}
