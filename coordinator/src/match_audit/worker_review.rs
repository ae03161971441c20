//! Which workers are suspended for what was found of them: records that disagree with their reports,
//! improbable results, other results than other workers had.

use sqlx::{PgPool, Result};
use time::OffsetDateTime;

use super::shadow_play::{self, Accused};
use crate::db::match_audits::{self, Recounted};
use crate::db::worker_stats::{self, Unlikely};
use crate::db::{shadows, suspensions};
use crate::worker_suspension::{SuspendedWorker, suspend};

/// A worker of ours packs no record that cannot be unpacked; a disk may break one, but not several.
const MOST_UNREADABLE: i64 = 3;

/// An honest worker's results are so improbable or more so in one of so many tests: all that were
/// made in a tournament share this probability (Bonferroni).
pub(crate) const IMPROBABLE: f64 = 0.001;

/// Suspends the workers over a bound, and returns them.
pub async fn review(pool: &PgPool, now: OffsetDateTime) -> Result<Vec<SuspendedWorker>> {
    let mut over = Vec::new();
    for found in match_audits::recounted(pool).await? {
        let reason = verdict(&found);
        over.extend(reason.map(|reason| (found.worker, reason)));
    }
    for found in worker_stats::unlikely(pool, IMPROBABLE).await? {
        let reason = improbable(&found);
        over.extend(reason.map(|reason| (found.worker, reason)));
    }
    let known = suspensions::all(pool).await?.into_iter().map(|found| found.worker).collect();
    for accused in shadow_play::accuse(&shadows::played(pool).await?, &known) {
        let Accused { worker, differences, others } = accused;
        let reason = format!(
            "{differences} of its matches came to something else when {others} other workers \
             played them, with bots that otherwise always say the same"
        );
        over.push((worker, reason));
    }
    let mut suspended = Vec::new();
    for (worker, reason) in over {
        suspended.extend(suspend(pool, worker, &reason, now).await?);
    }
    Ok(suspended)
}

/// Why a worker is to be suspended for what recounts have shown of it, if it is.
fn verdict(found: &Recounted) -> Option<String> {
    let Recounted { disagreed, unreadable, example, .. } = found;
    if *disagreed > 0 {
        let records = if *disagreed == 1 { "record does" } else { "records do" };
        return Some(format!(
            "{disagreed} {records} not give the result that it reported; match {example}"
        ));
    }
    (*unreadable >= MOST_UNREADABLE)
        .then(|| format!("{unreadable} of its records cannot be read; match {example}"))
}

/// Why a worker is to be suspended for results that are improbable, if it is.
#[expect(clippy::cast_precision_loss, reason = "there are fewer than 2^53 tests")]
fn improbable(found: &Unlikely) -> Option<String> {
    let Unlikely { edition, p, tests, .. } = found;
    (p * (*tests as f64) < IMPROBABLE).then(|| {
        format!(
            "its results in edition {edition} differ from those of the other workers: p = {p:.1e}, \
             one of {tests} tests"
        )
    })
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::WorkerId;

    use super::*;

    fn found(disagreed: i64, unreadable: i64) -> Recounted {
        let worker = WorkerId(1);
        Recounted { worker, disagreed, unreadable, example: "3/7: scores differ".to_owned() }
    }

    #[test]
    fn the_more_tests_are_made_the_less_probable_a_result_has_to_be() {
        let found = |p, tests| Unlikely { worker: WorkerId(1), edition: 7, p, tests };
        assert_eq!(improbable(&found(0.0004, 3)), None);
        assert!(improbable(&found(0.0003, 3)).unwrap().contains("p = 3.0e-4, one of 3 tests"));
    }

    #[test]
    fn a_single_false_record_is_proof_and_unreadable_ones_are_not_at_first() {
        assert_eq!(verdict(&found(0, 2)), None);
        let reason = verdict(&found(1, 0)).unwrap();
        assert!(reason.starts_with("1 record does not give the result"), "{reason}");
        assert!(reason.ends_with("match 3/7: scores differ"), "{reason}");
        assert!(verdict(&found(0, 3)).unwrap().starts_with("3 of its records"));
    }
}
