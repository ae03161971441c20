//! Work for a worker: asked for at the dispatcher, made a message, sent. What cannot be sent goes
//! back.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::Lease;
use arbiter_proto::trace::TraceParent;
use arbiter_proto::v1::CoordinatorMessage;
use arbiter_proto::v1::coordinator_message::Say as Answer;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::notes::Note;
use super::{End, Session, Tasks, outbound};
use crate::queue::{Failure, Task};
use crate::tournament::handout::{HandedOut, HandoutError, TakenMemory};
use crate::tournament::trial::{self, TrialError};

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
    Trial,
    Lot(Box<Result<HandedOut, HandoutError>>),
}

impl Session {
    /// Asks for something to do, once the worker is allowed to.
    pub(super) fn ask(&self, tasks: &mut Tasks) {
        self.ask_after(self.shared.returns.wait(self.worker, Instant::now()), tasks);
    }

    fn ask_after(&self, wait: Duration, tasks: &mut Tasks) {
        let (shared, worker, files) = (Arc::clone(&self.shared), self.worker, self.files.clone());
        let lease_ms = self.lease_ms();
        tasks.asking.spawn(async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            loop {
                files.wait().await;
                let (task, since) = shared.dispatcher.next_for(Some(worker)).await?;
                let lease = task.lease();
                let unsent = shared.dispatcher.hold(lease);
                let what = match task {
                    Task::Trial(_) => What::Trial,
                    Task::Lot(work) => {
                        let told = shared.handout.lot(work, lease_ms, &files);
                        let half = shared.terms.lease.unsigned_abs() / 2;
                        let Ok(told) = tokio::time::timeout(half, told).await else {
                            // There was no memory in time: others are quicker to take what they get.
                            drop(unsent);
                            tokio::time::sleep(half).await;
                            continue;
                        };
                        What::Lot(Box::new(told))
                    }
                };
                unsent.release();
                return Some(Asked { lease, since, what });
            }
        });
    }

    /// Sends what was asked for. What cannot be sent is given back.
    pub(super) async fn hand_out(&self, asked: Asked, tasks: &mut Tasks) -> Result<(), End> {
        let Asked { lease, since, what } = asked;
        let What::Lot(lot) = what else {
            return self.hand_out_trial(lease, since, tasks).await;
        };
        match *lot {
            Ok(HandedOut { lot, check, memory }) => {
                tracing::debug!(%lease, "handed out");
                self.keep_check(lease, check);
                self.begin(&[lease]);
                let said = self.say_large(Answer::Lot(lot), memory).await;
                self.sent(said, lease, since, tasks)
            }
            Err(HandoutError::Database { cause, .. }) => {
                self.put_off(lease, &cause, tasks);
                Ok(())
            }
            Err(error) => {
                self.cannot_hand_out(lease, &error.to_string(), tasks);
                Ok(())
            }
        }
    }

    /// Sends a version that is to be tried. What cannot be sent is given back.
    async fn hand_out_trial(
        &self,
        lease: Lease,
        since: Instant,
        tasks: &mut Tasks,
    ) -> Result<(), End> {
        let lease_ms = self.lease_ms();
        let Some(version) = lease.version() else { return Ok(()) };
        match trial::message(self.shared.queue.pool(), lease, version, lease_ms).await {
            Ok(message) => {
                let traced = TraceParent::carried(&message.trace);
                let trace_id = traced.map(|parent| parent.trace_id());
                tracing::info!(%lease, trace_id, "a trial is handed out");
                self.begin(&[lease]);
                let said = self.say(Answer::Trial(message)).await;
                self.shared.changes.tell();
                self.sent(said, lease, since, tasks)
            }
            Err(TrialError::Database { cause, .. }) => {
                self.put_off(lease, &cause, tasks);
                Ok(())
            }
            Err(error) => {
                self.cannot_hand_out(lease, &error.to_string(), tasks);
                Ok(())
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
            self.shared.queue.metrics().handed_out(since.elapsed());
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
    async fn say_large(&self, say: Answer, memory: Option<TakenMemory>) -> Result<(), End> {
        let Some(memory) = memory else { return self.say(say).await };
        let (weight, taken) = outbound::weigh(memory);
        let connection = self.connection.clone();
        let in_time = async move {
            if tokio::time::timeout(TAKING, taken).await.is_err() {
                tracing::warn!("takes too slowly what it is sent: its connection is closed");
                connection.inspect(|connection| connection.close());
            }
        };
        tokio::spawn(in_time.in_current_span());
        let message = CoordinatorMessage { say: Some(say) };
        self.outbound.send(Ok(message), Some(weight)).await.map_err(|_| End::Left)
    }
}
