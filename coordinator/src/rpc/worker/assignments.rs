//! Assigns work to a worker: gets it from the dispatcher, builds its message, sends it. Work that
//! cannot be sent is returned.

use std::time::Duration;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1::coordinator_message::Payload as Outgoing;
use arbiter_proto::v1::{self, CoordinatorMessage};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::lease_tasks::LeaseUpdate;
use super::{End, Session, Tasks, send_queue};
use crate::queue::{Failure, Task, Work};
use crate::service::WorkerService;
use crate::tournament::lot_assignment::{
    AssignmentError, PreparedLot, StateBudget, StateReservation,
};

/// How long a worker may take to receive a message with files: 70 KB a second are enough.
const SEND_TIMEOUT: Duration = Duration::from_secs(60);
/// The delay before a retry when an assignment cannot be read from the database.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Leased work that waits to be sent. `since` is when it could have been sent.
pub(super) struct PendingWork {
    pub(super) lease: Lease,
    since: Instant,
    step: Step,
}

enum Step {
    /// It has no message yet.
    Leased(Task),
    /// Its message was built, or could not be.
    Prepared(Box<Result<Assignment, AssignmentError>>),
}

/// The message of an assignment.
enum Assignment {
    Trial(v1::Trial),
    Lot(PreparedLot),
}

impl Session {
    /// Requests work, once the worker's return limit allows it.
    pub(super) fn request_work(&self, tasks: &mut Tasks) {
        let wait = self.workers.lease_returns.wait(self.admitted.worker, Instant::now());
        self.request_work_after(wait, tasks);
    }

    fn request_work_after(&self, wait: Duration, tasks: &mut Tasks) {
        let workers = self.workers.clone();
        let budget = self.state_budget.clone();
        let worker = self.admitted.worker;
        tasks.waiting.spawn(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            next_work(&workers, &budget, worker).await
        });
    }

    /// Sends leased work, or returns its lease if it cannot be sent.
    pub(super) async fn assign(&self, work: PendingWork, tasks: &mut Tasks) -> Result<(), End> {
        let PendingWork { lease, since, step } = work;
        let prepared = match step {
            Step::Prepared(prepared) => *prepared,
            Step::Leased(Task::Lot(work)) => {
                match self.workers.assignments.try_assign_lot(work, self.lease_ms()) {
                    Ok(lot) => lot.map(Assignment::Lot),
                    Err(work) => {
                        self.prepare_lot(work, since, tasks);
                        return Ok(());
                    }
                }
            }
            Step::Leased(Task::Trial(lease)) => {
                self.prepare_trial(lease, since, tasks);
                return Ok(());
            }
        };
        match prepared {
            Ok(assignment) => {
                let sent = self.send_assignment(lease, assignment).await;
                return self.after_send(sent, lease, since, tasks);
            }
            Err(AssignmentError::Database(cause) | AssignmentError::Edition(_, cause)) => {
                self.postpone(lease, &cause, tasks);
            }
            Err(AssignmentError::InvalidData(error)) => self.fail(lease, &error, tasks),
        }
        Ok(())
    }

    /// Builds the message of a lot in a separate task, since it has to read data or wait for
    /// memory.
    fn prepare_lot(&self, work: Work, since: Instant, tasks: &mut Tasks) {
        let workers = self.workers.clone();
        let budget = self.state_budget.clone();
        let worker = self.admitted.worker;
        let lease = work.lot.lease;
        let lease_ms = self.lease_ms();
        let unsent = workers.service.dispatcher.hold(lease);
        tasks.waiting.spawn(async move {
            let half = workers.service.lease().unsigned_abs() / 2;
            let lot = workers.assignments.assign_lot(work, lease_ms, &budget);
            let Ok(lot) = tokio::time::timeout(half, lot).await else {
                // Memory was not free in time. Other workers receive their messages faster.
                drop(unsent);
                tokio::time::sleep(half).await;
                return next_work(&workers, &budget, worker).await;
            };
            unsent.release();
            let prepared = lot.map(Assignment::Lot);
            Some(PendingWork { lease, since, step: Step::Prepared(Box::new(prepared)) })
        });
    }

    /// Builds the message of a trial in a separate task, since it has to read data.
    fn prepare_trial(&self, lease: Lease, since: Instant, tasks: &mut Tasks) {
        let Some(version) = lease.version() else { return };
        let workers = self.workers.clone();
        let lease_ms = self.lease_ms();
        let unsent = workers.service.dispatcher.hold(lease);
        tasks.waiting.spawn(async move {
            let trial = workers.trial_assignment(lease, version, lease_ms).await;
            unsent.release();
            let prepared = trial.map(Assignment::Trial);
            Some(PendingWork { lease, since, step: Step::Prepared(Box::new(prepared)) })
        });
    }

    /// Appends an assignment to the send queue.
    async fn send_assignment(&self, lease: Lease, assignment: Assignment) -> Result<(), End> {
        self.begin(&[lease]);
        match assignment {
            Assignment::Lot(PreparedLot { lot, check, memory }) => {
                tracing::debug!(%lease, "lot assigned");
                self.cache_check(lease, check);
                self.send_large(Outgoing::Lot(lot), memory).await
            }
            Assignment::Trial(trial) => {
                let parent = TraceParent::from_message(&trial.trace);
                let trace_id = parent.map(|parent| parent.trace_id());
                tracing::info!(%lease, trace_id, "trial assigned");
                let sent = self.send(Outgoing::Trial(trial)).await;
                self.workers.service.changes.notify();
                sent
            }
        }
    }

    /// Counts a sent assignment. Returns the lease of an unsent one.
    fn after_send(
        &self,
        sent: Result<(), End>,
        lease: Lease,
        since: Instant,
        tasks: &mut Tasks,
    ) -> Result<(), End> {
        if sent.is_err() {
            self.begin_update(LeaseUpdate::Return(vec![lease]), tasks);
        } else {
            self.workers.service.metrics().record_dispatch(since.elapsed());
        }
        sent
    }

    /// Returns a lease whose data cannot be read now, and requests work again after a delay. This
    /// is not a fault.
    fn postpone(&self, lease: Lease, error: &sqlx::Error, tasks: &mut Tasks) {
        tracing::warn!(%lease, %error, "cannot assign work; lease returned");
        self.begin_update(LeaseUpdate::Return(vec![lease]), tasks);
        self.request_work_after(RETRY_DELAY, tasks);
    }

    /// Fails an attempt whose stored data are wrong, and requests other work.
    fn fail(&self, lease: Lease, error: &str, tasks: &mut Tasks) {
        tracing::error!(%lease, error, "cannot assign work: its stored data are invalid");
        let reason = format!("cannot be assigned: {error}");
        let failure = Failure { lease, by: None, kind: FaultKind::HandOut, reason };
        self.begin_update(LeaseUpdate::Fault(failure), tasks);
        self.request_work(tasks);
    }

    /// Sends a message that holds memory until the worker has received it. If the worker is too
    /// slow, its connection is closed, which frees the memory of all its messages.
    async fn send_large(
        &self,
        payload: Outgoing,
        memory: Option<StateReservation>,
    ) -> Result<(), End> {
        let Some(memory) = memory else { return self.send(payload).await };
        let (memory, sent) = send_queue::hold(memory);
        let connection = self.connection.clone();
        let watch = async move {
            if tokio::time::timeout(SEND_TIMEOUT, sent).await.is_err() {
                tracing::warn!("the worker receives too slowly; connection closed");
                connection.inspect(|connection| connection.close());
            }
        };
        tokio::spawn(watch.in_current_span());
        let message = CoordinatorMessage { payload: Some(payload) };
        self.outbound.send(Ok(message), Some(memory)).await.map_err(|_| End::Disconnected)
    }
}

/// Waits for work, once the worker has received enough of its earlier messages.
async fn next_work(
    workers: &WorkerService,
    budget: &StateBudget,
    worker: WorkerId,
) -> Option<PendingWork> {
    budget.wait().await;
    let (task, since) = workers.service.dispatcher.next_for(Some(worker)).await?;
    Some(PendingWork { lease: task.lease(), since, step: Step::Leased(task) })
}
