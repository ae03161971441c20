//! Trials in the queue: leased beside lots, and ended by one report.

use arbiter_proto::ids::VersionId;
use sqlx::{PgConnection, Result};
use time::OffsetDateTime;

use super::{Queue, ReportStatus, retry};
use crate::db::trials::{self, Outcome};
use crate::db::{bots, tournaments, versions, worker_runtimes};
use crate::metrics::LeaseOperation;

impl Queue {
    /// Stores the result of a trial and the bundle that it built, and returns the status of the
    /// report. A version that passed enters its tournament.
    pub async fn end_trial(
        &self,
        outcome: &Outcome,
        program: &[u8],
        now: OffsetDateTime,
    ) -> Result<ReportStatus> {
        retry(|| async {
            let mut transaction = self.pool.begin().await?;
            if let Some(digest) = &outcome.program {
                versions::store_bundle(&mut *transaction, digest, program).await?;
            }
            if let Some(missing) = &outcome.missing_program
                && worker_runtimes::try_elsewhere(&mut transaction, outcome, missing).await?
            {
                transaction.commit().await?;
                return Ok(ReportStatus::Accepted);
            }
            let status = trials::finish(&mut transaction, outcome).await?;
            if status == ReportStatus::Foreign {
                self.refuse(LeaseOperation::Report, outcome.worker, outcome.lease);
            }
            if status != ReportStatus::Accepted {
                return Ok(status);
            }
            if let (None, Some(version)) = (&outcome.verdict, outcome.lease.version()) {
                enter(&mut transaction, version, now).await?;
            }
            transaction.commit().await?;
            Ok(status)
        })
        .await
    }
}

/// Makes an edition due that includes a version which has entered.
async fn enter(db: &mut PgConnection, version: VersionId, now: OffsetDateTime) -> Result<()> {
    if let Some(tournament) = bots::tournament_of(&mut *db, version).await? {
        tournaments::mark_changed(&mut *db, tournament, now).await?;
    }
    Ok(())
}
