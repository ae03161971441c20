//! Work for a worker: asked for at the dispatcher, made a message, sent. What cannot be sent goes
//! back.

use std::time::Duration;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{Lease, WorkerId};
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1::CoordinatorMessage;
use arbiter_proto::v1::coordinator_message::Payload as Answer;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::lease_tasks::Note;
use super::{End, Session, Tasks, send_queue};
use crate::queue::{Failure, Task, Work};
use crate::service::WorkerService;
use crate::tournament::lot_assignment::{
    AssignmentError, PreparedLot, StateBudget, StateReservation,
};
use crate::tournament::trial_assignment::{TrialAssignment, TrialError};

/// How long a worker may take for a message with files: 70 KB a second are enough.
const TAKING: Duration = Duration::from_secs(60);
/// When a worker asks again whose lot could not be handed out at that moment.
const HAND_OUT_REST: Duration = Duration::from_secs(1);

/// Something to do that is on its way to the worker, and since when it could have been there.
pub(super) struct Asked {
    pub(super) lease: Lease,
    since: Instant,
    what: What,
}

enum What {
    /// It was leased, and no message is made of it yet.
    Leased(Task),
    /// A message was made of it.
    Made(Box<Result<Made, NotMade>>),
}

/// A message that hands something out.
enum Made {
    Trial(TrialAssignment),
    Lot(PreparedLot),
}

/// Why there is no message about something that was leased.
enum NotMade {
    /// What it takes cannot be read at present.
    Database(sqlx::Error),
    /// It makes no sense.
    Nonsense(String),
}

impl From<AssignmentError> for NotMade {
    fn from(error: AssignmentError) -> Self {
        match error {
            AssignmentError::Database(_, cause) => Self::Database(cause),
            error => Self::Nonsense(error.to_string()),
        }
    }
}

impl From<TrialError> for NotMade {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Database(_, cause) => Self::Database(cause),
            error @ (TrialError::Settings { .. } | TrialError::Seat { .. }) => {
                Self::Nonsense(error.to_string())
            }
        }
    }
}

impl Session {
    /// Asks for something to do, once the worker is allowed to.
    pub(super) fn ask(&self, tasks: &mut Tasks) {
        self.ask_after(self.workers.lease_returns.wait(self.greeted.worker, Instant::now()), tasks);
    }

    fn ask_after(&self, wait: Duration, tasks: &mut Tasks) {
        let (workers, files, worker) =
            (self.workers.clone(), self.files.clone(), self.greeted.worker);
        tasks.asking.spawn(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            asked(&workers, &files, worker).await
        });
    }

    /// Sends what was asked for. What cannot be sent is given back.
    pub(super) async fn hand_out(&self, asked: Asked, tasks: &mut Tasks) -> Result<(), End> {
        let Asked { lease, since, what } = asked;
        let made = match what {
            What::Made(made) => *made,
            What::Leased(Task::Lot(work)) => {
                match self.workers.assignments.try_assign_lot(work, self.lease_ms()) {
                    Ok(lot) => lot.map(Made::Lot).map_err(NotMade::from),
                    Err(work) => {
                        self.prepare_lot(work, since, tasks);
                        return Ok(());
                    }
                }
            }
            What::Leased(Task::Trial(lease)) => {
                self.prepare_trial(lease, since, tasks);
                return Ok(());
            }
        };
        match made {
            Ok(made) => {
                let said = self.say_made(lease, made).await;
                return self.sent(said, lease, since, tasks);
            }
            Err(NotMade::Database(cause)) => self.put_off(lease, &cause, tasks),
            Err(NotMade::Nonsense(error)) => self.cannot_hand_out(lease, &error, tasks),
        }
        Ok(())
    }

    /// Makes a lot's message beside the session: something has to be read for it, or memory to be
    /// waited for.
    fn prepare_lot(&self, work: Work, since: Instant, tasks: &mut Tasks) {
        let (workers, files, worker) =
            (self.workers.clone(), self.files.clone(), self.greeted.worker);
        let (lease, lease_ms) = (work.lot.lease, self.lease_ms());
        let unsent = workers.service.dispatcher.hold(lease);
        tasks.asking.spawn(async move {
            let half = workers.service.lease.unsigned_abs() / 2;
            let lot = workers.assignments.assign_lot(work, lease_ms, &files);
            let Ok(lot) = tokio::time::timeout(half, lot).await else {
                // There was no memory in time: others are quicker to take what they get.
                drop(unsent);
                tokio::time::sleep(half).await;
                return asked(&workers, &files, worker).await;
            };
            unsent.release();
            let what = What::Made(Box::new(lot.map(Made::Lot).map_err(NotMade::from)));
            Some(Asked { lease, since, what })
        });
    }

    /// The same of a trial.
    fn prepare_trial(&self, lease: Lease, since: Instant, tasks: &mut Tasks) {
        let Some(version) = lease.version() else { return };
        let (workers, lease_ms) = (self.workers.clone(), self.lease_ms());
        let unsent = workers.service.dispatcher.hold(lease);
        tasks.asking.spawn(async move {
            let trial = workers.trial_assignment(lease, version, lease_ms).await;
            unsent.release();
            let what = What::Made(Box::new(trial.map(Made::Trial).map_err(NotMade::from)));
            Some(Asked { lease, since, what })
        });
    }

    /// Puts a message behind the others.
    async fn say_made(&self, lease: Lease, made: Made) -> Result<(), End> {
        self.begin(&[lease]);
        match made {
            Made::Lot(PreparedLot { lot, check, memory }) => {
                tracing::debug!(%lease, "handed out");
                self.keep_check(lease, check);
                self.say_large(Answer::Lot(lot.into()), memory).await
            }
            Made::Trial(trial) => {
                let traced = TraceParent::carried(&trial.trace);
                let trace_id = traced.map(|parent| parent.trace_id());
                tracing::info!(%lease, trace_id, "a trial is handed out");
                let said = self.say(Answer::Trial(trial.into())).await;
                self.workers.service.changes.notify();
                said
            }
        }
    }

    /// Counts what was sent, and takes back what was not.
    fn sent(
        &self,
        sent: Result<(), End>,
        lease: Lease,
        since: Instant,
        tasks: &mut Tasks,
    ) -> Result<(), End> {
        if sent.is_err() {
            self.begin_note(Note::GiveBack(vec![lease]), tasks);
        } else {
            self.workers.service.metrics().record_dispatch(since.elapsed());
        }
        sent
    }

    /// What was leased cannot be read at present: it is given back, which is no fault, and the worker
    /// asks again after a rest.
    fn put_off(&self, lease: Lease, error: &sqlx::Error, tasks: &mut Tasks) {
        tracing::warn!(%lease, %error, "cannot be handed out yet; given back");
        self.begin_note(Note::GiveBack(vec![lease]), tasks);
        self.ask_after(HAND_OUT_REST, tasks);
    }

    /// What was leased makes no sense: that attempt has failed, and the worker still has room.
    fn cannot_hand_out(&self, lease: Lease, error: &str, tasks: &mut Tasks) {
        tracing::error!(%lease, error, "cannot be handed out");
        let reason = format!("cannot be handed out: {error}");
        let failure = Failure { lease, by: None, kind: FaultKind::HandOut, reason };
        self.begin_note(Note::Fault(failure), tasks);
        self.ask(tasks);
    }

    /// Says something that holds memory until the worker has taken it. Where it does not in time, its
    /// connection is closed, which frees the memory of all that waits there.
    async fn say_large(&self, say: Answer, memory: Option<StateReservation>) -> Result<(), End> {
        let Some(memory) = memory else { return self.say(say).await };
        let (memory, sent) = send_queue::hold(memory);
        let connection = self.connection.clone();
        let in_time = async move {
            if tokio::time::timeout(TAKING, sent).await.is_err() {
                tracing::warn!("takes too slowly what it is sent: its connection is closed");
                connection.inspect(|connection| connection.close());
            }
        };
        tokio::spawn(in_time.in_current_span());
        let message = CoordinatorMessage { payload: Some(say) };
        self.outbound.send(Ok(message), Some(memory)).await.map_err(|_| End::Left)
    }
}

/// Waits for something to do, once the worker has taken enough of what it was sent.
async fn asked(workers: &WorkerService, files: &StateBudget, worker: WorkerId) -> Option<Asked> {
    files.wait().await;
    let (task, since) = workers.service.dispatcher.next_for(Some(worker)).await?;
    Some(Asked { lease: task.lease(), since, what: What::Leased(task) })
}
