//! The state of each slot, for the supervisor.

use arbiter_proto::ids::Lease;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::job::Job;
use crate::metrics::SlotActivity;
use crate::seat::StopHandle;

/// The state of a slot.
#[derive(Debug)]
pub(super) enum SlotState {
    Idle,
    /// Idle after a fault, until this time.
    Pausing(Instant),
    /// Waiting for the bots of a job.
    Fetching {
        job: Box<Job>,
        task: AbortHandle,
    },
    /// Playing. `stop_handle` is `None` once the job was stopped. `lost`: the lease was lost, so
    /// the worker does not give it back.
    Playing {
        lease: Lease,
        stop_handle: Option<StopHandle>,
        lost: bool,
    },
    /// Waiting for dying processes to be gone, and at least until this time.
    Recovering(Option<Instant>),
}

impl SlotState {
    pub(super) fn activity(&self) -> SlotActivity {
        match self {
            Self::Idle => SlotActivity::Idle,
            Self::Pausing(_) => SlotActivity::Pausing,
            Self::Fetching { .. } => SlotActivity::Fetching,
            Self::Playing { .. } => SlotActivity::Playing,
            Self::Recovering(_) => SlotActivity::Recovering,
        }
    }

    pub(super) fn lease(&self) -> Option<Lease> {
        match self {
            Self::Fetching { job, .. } => Some(job.lease),
            Self::Playing { lease, lost: false, .. } => Some(*lease),
            Self::Playing { .. } | Self::Idle | Self::Pausing(_) | Self::Recovering(_) => None,
        }
    }
}
