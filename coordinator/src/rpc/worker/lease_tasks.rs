//! The tasks of a session beside reading and writing messages: they renew and return leases, record
//! faults, and check whether the worker may still work.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::Lease;
use arbiter_proto::state_words::match_state;

use super::{End, Session, Tasks};
use crate::access::Role;
use crate::backoff::Backoff;
use crate::db;
use crate::queue::Failure;
use crate::service::{ErrorKind, ServiceError, suspended};

/// A change of leases that is retried until it is stored.
#[derive(Debug)]
pub(super) enum LeaseUpdate {
    /// These leases are returned.
    Return(Vec<Lease>),
    /// An attempt has failed.
    Fault(Failure),
}

impl Session {
    /// Begins an update of leases.
    pub(super) fn begin_update(&self, update: LeaseUpdate, tasks: &mut Tasks) {
        tasks.updating.spawn(tracing::Instrument::in_current_span(self.update(update)));
    }

    /// Stores an update of leases. It retries until the leases have expired anyway.
    pub(super) fn update(&self, update: LeaseUpdate) -> impl Future<Output = ()> + Send + use<> {
        let workers = self.workers.clone();
        let worker = self.admitted.worker;
        let lease = workers.service.lease().unsigned_abs();
        async move {
            let mut backoff = Backoff::new();
            let storing = async {
                loop {
                    let result = match &update {
                        LeaseUpdate::Return(leases) => {
                            workers.service.queue.return_leases(Some(worker), leases).await.map(
                                |returned| {
                                    tracing::info!(lots = returned.len(), "leases returned");
                                },
                            )
                        }
                        LeaseUpdate::Fault(failure) => {
                            let failures =
                                workers.service.queue.fail(std::slice::from_ref(failure)).await;
                            failures.map(|failures| {
                                for failed in failures {
                                    let state = match_state(failed.state.as_str());
                                    tracing::warn!(lease = %failed.lease, state, "rescheduled");
                                }
                            })
                        }
                    };
                    let Err(error) = result else { break };
                    let delay = backoff.next();
                    let delay_ms = delay.as_millis();
                    tracing::warn!(%error, delay_ms, "cannot update leases; retrying");
                    tokio::time::sleep(delay).await;
                }
            };
            drop(tokio::time::timeout(lease, storing).await);
            workers.service.dispatcher.news();
        }
    }

    /// Renews leases, and returns those that are lost. No lease is lost while the database cannot
    /// renew. If this coordinator cannot reach its database, the session ends, since
    /// another coordinator may reach it.
    pub(super) fn renewal(
        &self,
        leases: Vec<Lease>,
    ) -> impl Future<Output = Result<Vec<Lease>, End>> + Send + use<> {
        let workers = self.workers.clone();
        let worker = self.admitted.worker;
        let stream = self.stream();
        async move {
            let renewed = match workers.service.queue.renew(Some(worker), &leases).await {
                Ok(renewed) => renewed,
                Err(error) if db::is_unavailable(&error) => {
                    return Err(ServiceError::from(error).into());
                }
                Err(error) => {
                    tracing::warn!(%error, lots = leases.len(), "cannot renew leases");
                    return Ok(Vec::new());
                }
            };
            workers.service.playing.add(stream, &renewed);
            Ok(leases.into_iter().filter(|lease| !renewed.contains(lease)).collect())
        }
    }

    /// Waits until the session must end: the token was revoked, the worker was suspended or has
    /// disconnected, or the coordinator stops. Each `interval` it records that the
    /// worker is connected.
    pub(super) fn ended(&self, interval: Duration) -> impl Future<Output = End> + Send + use<> {
        let workers = self.workers.clone();
        let worker = self.admitted.worker;
        let secret = self.secret.clone();
        let origin = self.origin.clone();
        let outbound = self.outbound.clone();
        let token = Arc::clone(&self.token);
        async move {
            let checking = async {
                let mut checks = tokio::time::interval(interval);
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
                () = outbound.closed() => End::Disconnected,
                () = workers.service.changes.stopped() => ServiceError::stopping().into(),
            }
        }
    }
}
