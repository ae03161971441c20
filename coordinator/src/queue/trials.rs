//! Trials in the queue: leased beside lots, and ended by one report.

use arbiter_proto::ids::VersionId;
use sqlx::{PgConnection, Result};
use time::OffsetDateTime;

use super::{Queue, Verdict, again};
use crate::db::trials::{self, Outcome};
use crate::db::{bots, tournaments, versions};
use crate::metrics::LeaseOperation;

impl Queue {
    /// Stores what a trial came to, with the bundle that it built, and says what became of the
    /// report. A version that passed has entered from now on.
    pub async fn end_trial(
        &self,
        outcome: &Outcome,
        program: &[u8],
        now: OffsetDateTime,
    ) -> Result<Verdict> {
        again(|| async {
            let mut transaction = self.pool.begin().await?;
            if let Some(digest) = &outcome.program {
                versions::store_bundle(&mut *transaction, digest, program).await?;
            }
            let verdict = trials::finish(&mut transaction, outcome).await?;
            if verdict == Verdict::Foreign {
                self.refuse(LeaseOperation::Report, outcome.worker, outcome.lease);
            }
            if verdict != Verdict::Accepted {
                return Ok(verdict);
            }
            if let (None, Some(version)) = (&outcome.verdict, outcome.lease.version()) {
                enter(&mut transaction, version, now).await?;
            }
            transaction.commit().await?;
            Ok(verdict)
        })
        .await
    }
}

/// Takes note that a version has entered its tournament.
async fn enter(db: &mut PgConnection, version: VersionId, now: OffsetDateTime) -> Result<()> {
    if let Some(tournament) = bots::tournament_of(&mut *db, version).await? {
        tournaments::changed(&mut *db, tournament, now).await?;
    }
    Ok(())
}
