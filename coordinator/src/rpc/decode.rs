//! Reads the reports of workers.

use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1;
use time::OffsetDateTime;

use crate::service::{Delivery, DeliveryContents};

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
