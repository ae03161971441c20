//! Suspends workers for the findings of audits: records that contradict reports, improbable
//! results, and differences from other workers.

use sqlx::{PgPool, Result};
use time::OffsetDateTime;

use super::shadow_play::{self, Accused};
use crate::db::match_audits::{self, RecountDifferences};
use crate::db::worker_stats::{self, ImprobableResidual};
use crate::db::{shadows, worker_suspensions};
use crate::worker_suspension::{SuspendedWorker, suspend};

/// This many unreadable records suspend a worker. The worker program writes readable records, and a
/// faulty disk is unlikely to damage several.
const MAX_UNREADABLE: i64 = 3;

/// Maximum probability that the tests of a tournament suspend an honest worker. It is divided by
/// the number of tests (Bonferroni correction).
pub(crate) const IMPROBABLE: f64 = 0.001;

/// Suspends the workers for which an audit gives a reason, and returns them.
pub async fn review(pool: &PgPool, now: OffsetDateTime) -> Result<Vec<SuspendedWorker>> {
    let mut reasons = Vec::new();
    for row in match_audits::recount_differences(pool).await? {
        reasons.extend(recount_reason(&row).map(|reason| (row.worker, reason)));
    }
    for row in worker_stats::improbable_residuals(pool, IMPROBABLE).await? {
        reasons.extend(improbability_reason(&row).map(|reason| (row.worker, reason)));
    }
    let excluded = worker_suspensions::all(pool).await?.into_iter().map(|row| row.worker).collect();
    for accused in shadow_play::accuse(&shadows::played(pool).await?, &excluded) {
        let Accused { worker, differences, others } = accused;
        let reason = format!(
            "{differences} of its matches came to something else when {others} other workers \
             played them, with bots that otherwise always say the same"
        );
        reasons.push((worker, reason));
    }
    let mut suspended = Vec::new();
    for (worker, reason) in reasons {
        suspended.extend(suspend(pool, worker, &reason, now).await?);
    }
    Ok(suspended)
}

/// The reason to suspend a worker by its recounts, if there is one.
fn recount_reason(row: &RecountDifferences) -> Option<String> {
    let RecountDifferences { disagreed, unreadable, example, .. } = row;
    if *disagreed > 0 {
        let records = if *disagreed == 1 { "record does" } else { "records do" };
        return Some(format!(
            "{disagreed} {records} not give the result that it reported; match {example}"
        ));
    }
    (*unreadable >= MAX_UNREADABLE)
        .then(|| format!("{unreadable} of its records cannot be read; match {example}"))
}

/// The reason to suspend a worker for improbable results, if there is one.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 tests")]
fn improbability_reason(row: &ImprobableResidual) -> Option<String> {
    let ImprobableResidual { tournament, edition, p, tests, .. } = row;
    (p * (*tests as f64) < IMPROBABLE).then(|| {
        format!(
            "its results in edition {edition} of {tournament} differ from those of the other \
             workers: p = {p:.1e}, one of {tests} tests"
        )
    })
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::WorkerId;

    use super::*;

    fn recounted(disagreed: i64, unreadable: i64) -> RecountDifferences {
        let worker = WorkerId(1);
        RecountDifferences {
            worker,
            disagreed,
            unreadable,
            example: "spring/7: scores differ".to_owned(),
        }
    }

    #[test]
    fn the_threshold_falls_with_the_number_of_tests() {
        let unlikely = |p, tests| {
            let tournament = "spring".to_owned();
            ImprobableResidual { worker: WorkerId(1), tournament, edition: 7, p, tests }
        };
        assert_eq!(improbability_reason(&unlikely(0.0004, 3)), None);
        assert!(
            improbability_reason(&unlikely(0.0003, 3))
                .unwrap()
                .contains("p = 3.0e-4, one of 3 tests")
        );
    }

    #[test]
    fn one_false_record_or_three_unreadable_ones_suspend_a_worker() {
        assert_eq!(recount_reason(&recounted(0, 2)), None);
        let reason = recount_reason(&recounted(1, 0)).unwrap();
        assert!(reason.starts_with("1 record does not give the result"), "{reason}");
        assert!(reason.ends_with("match spring/7: scores differ"), "{reason}");
        assert!(recount_reason(&recounted(0, 3)).unwrap().starts_with("3 of its records"));
    }
}
