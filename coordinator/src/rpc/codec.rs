//! Conversions of lots, trials and reports to and from messages.

use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1;
use time::OffsetDateTime;

use crate::service::{Delivery, DeliveryContents};
use crate::tournament::lot_assignment::LotAssignment;
use crate::tournament::trial_assignment::TrialAssignment;

pub mod report;
pub mod trial;

/// Decodes a worker's report under a lease.
pub(super) fn delivery(
    worker: WorkerId,
    lease: Lease,
    mut report: v1::Report,
    now: OffsetDateTime,
) -> Delivery {
    let trace = TraceParent::from_message(&report.trace);
    let contents = match report.trial.take() {
        Some(trial_report) => trial::read(worker, lease, trial_report)
            .map(|(outcome, program)| DeliveryContents::Trial(Box::new(outcome), program)),
        None => report::read(worker, report, now).map(DeliveryContents::Report),
    };
    let contents = contents.map_err(|error| error.to_string());
    Delivery { worker, lease, trace, contents }
}

impl From<LotAssignment> for v1::Lot {
    fn from(lot: LotAssignment) -> Self {
        let LotAssignment { lease, game, settings, matches, lease_ms, expected_ms, trace } = lot;
        let matches = matches.into_iter().map(Into::into).collect();
        Self { lease: Some(lease.into()), game, settings, matches, lease_ms, expected_ms, trace }
    }
}

impl From<TrialAssignment> for v1::Trial {
    fn from(trial: TrialAssignment) -> Self {
        Self {
            lease: Some(trial.lease.into()),
            game: trial.game,
            settings: trial.settings,
            seed: trial.seed.0.to_vec(),
            subject: Some(trial.subject.into()),
            opponents: trial.opponents.into_iter().map(Into::into).collect(),
            lease_ms: trial.lease_ms,
            trace: trial.trace,
        }
    }
}
