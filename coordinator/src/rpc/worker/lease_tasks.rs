//! What a session does beside reading and writing messages: renewing leases, taking them back, taking
//! note of faults, looking whether the worker may still work.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::Lease;

use super::{End, Session, Tasks};
use crate::access::Role;
use crate::backoff::Backoff;
use crate::db;
use crate::queue::Failure;
use crate::service::{ErrorKind, ServiceError, suspended};

/// What a worker said that is to be noted, however long that takes.
#[derive(Debug)]
pub(super) enum Note {
    /// These leases are given back.
    GiveBack(Vec<Lease>),
    /// An attempt has failed.
    Fault(Failure),
}

impl Session {
    /// Begins to take note of something.
    pub(super) fn begin_note(&self, note: Note, tasks: &mut Tasks) {
        tasks.noting.spawn(tracing::Instrument::in_current_span(self.note(note)));
    }

    /// Takes note of something: until it is done, or the lease it is about has run out anyway.
    pub(super) fn note(&self, note: Note) -> impl Future<Output = ()> + Send + use<> {
        let (workers, worker) = (self.workers.clone(), self.greeted.worker);
        let lease = workers.service.lease.unsigned_abs();
        async move {
            let mut backoff = Backoff::new();
            let noting = async {
                loop {
                    let noted = match &note {
                        Note::GiveBack(leases) => {
                            workers.service.queue.give_back(Some(worker), leases).await.map(
                                |back| {
                                    tracing::info!(lots = back.len(), "given back");
                                },
                            )
                        }
                        Note::Fault(failure) => {
                            let failed =
                                workers.service.queue.fail(std::slice::from_ref(failure)).await;
                            failed.map(|failed| {
                                for failed in failed {
                                    let state = failed.state.as_str();
                                    tracing::warn!(lease = %failed.lease, state, "rescheduled");
                                }
                            })
                        }
                    };
                    let Err(error) = noted else { break };
                    let rest = backoff.next();
                    tracing::warn!(%error, rest_ms = rest.as_millis(), "cannot be noted; retrying");
                    tokio::time::sleep(rest).await;
                }
            };
            drop(tokio::time::timeout(lease, noting).await);
            workers.service.dispatcher.news();
        }
    }

    /// Renews leases, and gives those that no longer hold. A database that cannot renew at present
    /// takes no lease away. The session ends where this coordinator has lost its database: another
    /// one may have it.
    pub(super) fn renewal(
        &self,
        leases: Vec<Lease>,
    ) -> impl Future<Output = Result<Vec<Lease>, End>> + Send + use<> {
        let (workers, worker, stream) = (self.workers.clone(), self.greeted.worker, self.stream());
        async move {
            let held = match workers.service.queue.renew(Some(worker), &leases).await {
                Ok(held) => held,
                Err(error) if db::is_away(&error) => return Err(ServiceError::from(error).into()),
                Err(error) => {
                    tracing::warn!(%error, lots = leases.len(), "leases cannot be renewed");
                    return Ok(Vec::new());
                }
            };
            workers.service.playing.begin(stream, &held);
            Ok(leases.into_iter().filter(|lease| !held.contains(lease)).collect())
        }
    }

    /// Waits until the session is to end, whatever its worker says: its token was revoked, it was
    /// suspended, it has left, or the coordinator stops. Every so often it is noted that it is there.
    pub(super) fn ended(&self, each: Duration) -> impl Future<Output = End> + Send + use<> {
        let (workers, worker) = (self.workers.clone(), self.greeted.worker);
        let (secret, origin) = (self.secret.clone(), self.origin.clone());
        let (outbound, token) = (self.outbound.clone(), Arc::clone(&self.token));
        async move {
            let checking = async {
                let mut checks = tokio::time::interval(each);
                loop {
                    checks.tick().await;
                    let caller = workers.service.caller(Some(&secret), &origin).await;
                    if let Err(error) =
                        caller.and_then(|caller| caller.require(Role::Worker).cloned())
                        && [ErrorKind::Unauthenticated, ErrorKind::PermissionDenied]
                            .contains(&error.kind())
                    {
                        return error.into();
                    }
                    workers.mark_seen(worker).await;
                }
            };
            tokio::select! {
                end = checking => end,
                () = token.ended() => ServiceError::token_ended().into(),
                reason = workers.service.suspensions.wait(worker) => suspended(&reason).into(),
                () = outbound.closed() => End::Left,
                () = workers.service.changes.stopped() => ServiceError::stopping().into(),
            }
        }
    }
}
