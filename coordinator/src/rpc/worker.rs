//! The stream of a worker: sends lots and receives reports.
//!
//! # Theory of operation
//!
//! A session is one stream. It asks the dispatcher once for each free slot of the worker, and sends
//! the lots that it gets. It stores any number of reports at a time and responds to each, renews
//! and returns leases, and records faults. It keeps no state about a lease. So a worker
//! that reconnects, or connects to another coordinator, renews and reports as before. A lot that
//! can no longer be sent is returned at once. A lot that was in transit when the stream broke
//! expires and is leased again.
//!
//! The task of a session only reads and writes messages. Renewing, storing and all other work with
//! the database runs in separate tasks (`worker/lease_tasks.rs`), so that one that waits for a lock
//! delays no other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arbiter_proto::convert::{self, InvalidField};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::Lease;
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as Outgoing;
use arbiter_proto::v1::worker_message::Payload;
use arbiter_proto::v1::{
    BundlePiece, CoordinatorMessage, FetchBundleRequest, Hello, LeasesLost, ReportResponse,
    Welcome, WorkerMessage,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;
use tonic::{Code, Request, Response, Status, Streaming};
use tracing::Instrument as _;

use super::admission::{ConnectionInfo, Reservation};
use super::client_services::{ResponseStream, split_request};
use super::decode;
use crate::access::stream_revocation::{OpenToken, OpenTokens};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::connection_limit::Connection;
use crate::metrics::GaugeGuard;
use crate::queue::{Failure, WorkerStream};
use crate::service::{AdmittedWorker, MAX_SLOTS, ServiceError, WorkerService, suspended};
use crate::tournament::lot_assignment::StateBudget;
use crate::tournament::report_check::LotCheck;

mod assignments;
mod lease_tasks;
mod send_queue;

use assignments::PendingWork;
use lease_tasks::LeaseUpdate;
use send_queue::SendQueue;

/// How long a worker may take to send its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Messages that may wait to be sent to a worker.
const MAX_QUEUED: usize = 64;
/// How often a worker's token is checked during the time of a lease.
const TOKEN_CHECKS_PER_LEASE: u32 = 3;
/// Lease updates of a worker that run at a time. At the limit the stream is not read.
const MAX_UPDATES: usize = 64;
/// The longest reason of a fault that is stored, in characters.
const MAX_REASON: usize = 1000;

/// The gRPC service of workers.
#[derive(Clone, Debug)]
pub(super) struct Workers {
    pub(super) workers: WorkerService,
    pub(super) open_tokens: OpenTokens,
}

#[tonic::async_trait]
impl v1::worker_service_server::WorkerService for Workers {
    type WorkStream = ResponseStream<CoordinatorMessage>;
    type FetchBundleStream = ResponseStream<BundlePiece>;

    async fn work(
        &self,
        request: Request<Streaming<WorkerMessage>>,
    ) -> Result<Response<Self::WorkStream>, Status> {
        let secret = Secret::bearer(request.metadata().as_ref());
        let secret = secret.ok_or_else(|| Status::unauthenticated("no token"))?;
        let extensions = request.extensions();
        let origin = extensions.get::<Origin>().cloned().unwrap_or_default();
        let memory = extensions.get::<Reservation>().cloned().unwrap_or_default();
        let connection = extensions.get::<ConnectionInfo>();
        let connection = connection.map(|info| Arc::clone(&info.connection));
        let (caller, mut inbound) = split_request(request);
        let token = caller.require(Role::Worker)?;
        let hello = hello(&mut inbound).await?;
        let admitted = self.workers.admit(token.id, &hello).await?;
        let span = tracing::info_span!("worker", worker = %admitted.worker, called = hello.name);
        let (outbound, messages) = send_queue::channel(MAX_QUEUED);
        let session = Session {
            state_budget: self.workers.assignments.state_budget(),
            token: Arc::new(self.open_tokens.register(&secret, true)),
            workers: self.workers.clone(),
            checks: Mutex::default(),
            admitted,
            secret,
            origin,
            memory,
            connection,
            outbound,
        };
        tokio::spawn(session.run(inbound).instrument(span));
        Ok(Response::new(Box::pin(messages)))
    }

    async fn fetch_bundle(
        &self,
        request: Request<FetchBundleRequest>,
    ) -> Result<Response<Self::FetchBundleStream>, Status> {
        let (caller, message) = split_request(request);
        let pieces = self.workers.fetch_bundle(&caller, message).await?;
        Ok(Response::new(Box::pin(pieces.map(|piece| Ok(BundlePiece { bytes: piece? })))))
    }
}

/// Waits for a worker's first message.
async fn hello(inbound: &mut Streaming<WorkerMessage>) -> Result<Hello, Status> {
    let first = tokio::time::timeout(HELLO_TIMEOUT, inbound.message()).await;
    let first =
        first.map_err(|_| Status::deadline_exceeded("the worker sent no hello in time"))??;
    match first.and_then(|message| message.payload) {
        Some(Payload::Hello(hello)) => Ok(hello),
        _ => Err(Status::invalid_argument("the first message of a worker must be a hello")),
    }
}

/// One stream of one worker.
struct Session {
    workers: WorkerService,
    admitted: AdmittedWorker,
    /// Completes when the token becomes invalid.
    token: Arc<OpenToken>,
    secret: Secret,
    origin: Origin,
    /// The memory that is reserved for the last message.
    memory: Reservation,
    /// The connection, if it is known.
    connection: Option<Arc<Connection>>,
    /// The memory for bots' files in lots.
    state_budget: StateBudget,
    /// The report checks of lots that were assigned over this stream.
    checks: Mutex<HashMap<Lease, LotCheck>>,
    outbound: SendQueue,
}

/// The tasks of a session that run beside reading its stream.
#[derive(Default)]
struct Tasks {
    /// Waiting for work, one task for each free slot.
    waiting: JoinSet<Option<PendingWork>>,
    /// Storing reports.
    reporting: JoinSet<Result<ReportResponse, ServiceError>>,
    /// Renewing leases, one message at a time.
    renewing: JoinSet<Result<Vec<Lease>, End>>,
    /// The leases of the latest renewal message, which is next.
    renew_next: Option<Vec<Lease>>,
    /// Returning leases and recording faults.
    updating: JoinSet<()>,
    /// Waiting for an external reason to end the session. A separate task, so that it is not polled
    /// with each message.
    ending: JoinSet<End>,
}

/// Why a session ends.
enum End {
    /// The worker disconnected, or its stream broke.
    Disconnected,
    /// The coordinator ends it.
    Refused(Status),
}

impl From<ServiceError> for End {
    fn from(error: ServiceError) -> Self {
        Self::Refused(error.into())
    }
}

impl From<Status> for End {
    fn from(status: Status) -> Self {
        Self::Refused(status)
    }
}

impl Session {
    async fn run(self, mut inbound: Streaming<WorkerMessage>) {
        let _present = GaugeGuard::new(&self.workers.service.metrics().worker_streams);
        tracing::info!("connected");
        let end = self.serve(&mut inbound).await;
        let leases = self.workers.service.playing.of(self.stream());
        self.workers.service.playing.remove_stream(self.stream());
        self.workers.disconnect(self.admitted.worker, self.admitted.stream).await;
        match end {
            End::Disconnected => tracing::info!("disconnected"),
            End::Refused(status) => {
                tracing::warn!(reason = status.message(), "disconnected by the coordinator");
                if matches!(status.code(), Code::Unauthenticated | Code::FailedPrecondition) {
                    // The worker will not reconnect. Its leases must not count as faults.
                    tokio::spawn(self.update(LeaseUpdate::Return(leases)).in_current_span());
                }
                // Sending fails if the worker has disconnected.
                drop(self.outbound.send(Err(status), None).await);
            }
        }
    }

    /// How long a lease lasts, in milliseconds.
    fn lease_ms(&self) -> i64 {
        i64::try_from(self.workers.service.lease().whole_milliseconds()).unwrap_or(i64::MAX)
    }

    fn stream(&self) -> WorkerStream {
        (self.admitted.worker, self.admitted.stream)
    }

    fn checks(&self) -> MutexGuard<'_, HashMap<Lease, LotCheck>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that these leases were assigned or renewed over this stream.
    fn begin(&self, leases: &[Lease]) {
        self.workers.service.playing.add(self.stream(), leases);
    }

    /// Records that these leases have ended.
    fn end(&self, leases: &[Lease]) {
        self.workers.service.playing.remove(self.stream(), leases);
        let mut checks = self.checks();
        for lease in leases {
            checks.remove(lease);
        }
    }

    /// Caches the report check of a lot. The number of checks is limited, because a worker may
    /// never report. A check that is not cached is read again.
    fn cache_check(&self, lease: Lease, check: LotCheck) {
        let mut checks = self.checks();
        if checks.len() < MAX_SLOTS as usize {
            checks.insert(lease, check);
        }
    }

    async fn serve(&self, inbound: &mut Streaming<WorkerMessage>) -> End {
        let lease = self.workers.service.lease().unsigned_abs();
        let mut tasks = Tasks::default();
        let worker = self.admitted.worker.0;
        let database = self.admitted.database.clone();
        let welcome = Welcome { worker, lease_ms: self.lease_ms(), database };
        let mut result = self.send(Outgoing::Welcome(welcome)).await;
        tasks.ending.spawn(self.ended(lease / TOKEN_CHECKS_PER_LEASE).in_current_span());
        while result.is_ok() {
            result = tokio::select! {
                message = inbound.message(), if tasks.updating.len() < MAX_UPDATES => match message {
                    Ok(Some(message)) => self.receive(message, &mut tasks),
                    Err(status) if is_refusal(&status) => Err(status.into()),
                    Ok(None) | Err(_) => Err(End::Disconnected),
                },
                Some(work) = tasks.waiting.join_next() => match work {
                    Ok(Some(work)) => self.assign(work, &mut tasks).await,
                    // The dispatcher returns nothing when the coordinator stops.
                    _ => Err(ServiceError::stopping().into()),
                },
                Some(stored) = tasks.reporting.join_next() => match stored {
                    Ok(Ok(response)) => self.respond(response).await,
                    Ok(Err(status)) => Err(status.into()),
                    Err(_) => Err(Status::internal("a report could not be stored").into()),
                },
                Some(renewed) = tasks.renewing.join_next() => {
                    let next = tasks.renew_next.take();
                    if let Some(leases) = next {
                        self.renew(leases, &mut tasks);
                    }
                    match renewed {
                        Ok(Ok(lost)) => self.send_lost(lost).await,
                        Ok(Err(end)) => Err(end),
                        Err(_) => Err(Status::internal("leases could not be renewed").into()),
                    }
                }
                Some(_) = tasks.updating.join_next() => Ok(()),
                Some(end) = tasks.ending.join_next() => Err(end.unwrap_or(End::Disconnected)),
            };
        }
        self.return_unsent(tasks.waiting).await;
        // Updates that have begun still run to completion.
        tasks.updating.detach_all();
        result.err().unwrap_or(End::Disconnected)
    }

    /// Returns leases for this worker that can no longer be sent.
    async fn return_unsent(&self, mut waiting: JoinSet<Option<PendingWork>>) {
        // Unfinished tasks return their own leases when they are aborted.
        waiting.abort_all();
        let mut leases = Vec::new();
        while let Some(work) = waiting.join_next().await {
            leases.extend(work.ok().flatten().map(|work| work.lease));
        }
        if !leases.is_empty() {
            tokio::spawn(self.update(LeaseUpdate::Return(leases)).in_current_span());
        }
    }

    async fn send(&self, payload: Outgoing) -> Result<(), End> {
        let message = CoordinatorMessage { payload: Some(payload) };
        self.outbound.send(Ok(message), None).await.map_err(|_| End::Disconnected)
    }

    /// Handles a message of the worker.
    fn receive(&self, message: WorkerMessage, tasks: &mut Tasks) -> Result<(), End> {
        if let Some(reason) = self.workers.service.suspensions.reason(self.admitted.worker) {
            return Err(suspended(&reason).into());
        }
        match message.payload {
            Some(Payload::Capacity(capacity)) => {
                let waiting = u32::try_from(tasks.waiting.len()).unwrap_or(u32::MAX);
                if capacity.slots > MAX_SLOTS.saturating_sub(waiting) {
                    let error = format!("a worker has at most {MAX_SLOTS} slots");
                    return Err(Status::invalid_argument(error).into());
                }
                (0..capacity.slots).for_each(|_| self.request_work(tasks));
                Ok(())
            }
            Some(Payload::Report(report)) => self.report(report, tasks),
            Some(Payload::RenewLeases(renew)) => {
                self.renew(leases(renew.leases)?, tasks);
                Ok(())
            }
            Some(Payload::ReturnLeases(returned)) => {
                let returned = leases(returned.leases)?;
                self.end(&returned);
                self.limit_returns(returned.len());
                self.begin_update(LeaseUpdate::Return(returned), tasks);
                Ok(())
            }
            Some(Payload::Fault(fault)) => self.fault(&fault, tasks),
            Some(Payload::Hello(_)) => {
                Err(Status::invalid_argument("a worker sends one hello only").into())
            }
            None => Err(Status::invalid_argument("a message has no payload").into()),
        }
    }

    /// Counts the leases that the worker returns against its limit.
    fn limit_returns(&self, leases: usize) {
        let AdmittedWorker { worker, slots, .. } = self.admitted;
        let wait = self.workers.lease_returns.record(worker, slots, leases, Instant::now());
        if let Some(wait) = wait {
            let wait_s = wait.as_secs();
            tracing::warn!(
                leases,
                wait_s,
                "worker returned too many leases; it gets no work for this time"
            );
        }
    }

    /// Begins to store a report.
    fn report(&self, report: v1::Report, tasks: &mut Tasks) -> Result<(), End> {
        let arrived_at = Instant::now();
        let lease = lease(report.lease)?;
        // The memory is freed for other reports when this one is stored.
        let memory = self.memory.take();
        let check = self.checks().remove(&lease);
        self.workers.service.playing.remove(self.stream(), &[lease]);
        let workers = self.workers.clone();
        let now = workers.service.now();
        let delivery = decode::delivery(self.admitted.worker, lease, report, now);
        let storing = workers.store_delivery(delivery, check.as_ref(), arrived_at);
        let store = async move {
            let _memory = memory;
            storing.await
        };
        tasks.reporting.spawn(store.in_current_span());
        Ok(())
    }

    /// Responds to a report.
    async fn respond(&self, response: ReportResponse) -> Result<(), End> {
        // The lease may have been renewed since the report.
        if let Ok(lease) = lease(response.lease) {
            self.workers.service.playing.remove(self.stream(), &[lease]);
        }
        self.send(Outgoing::ReportResponse(response)).await
    }

    /// Renews leases as soon as the renewal before has ended. Each message names all leases, so
    /// only the latest one has to wait.
    fn renew(&self, leases: Vec<Lease>, tasks: &mut Tasks) {
        if tasks.renewing.is_empty() {
            tasks.renewing.spawn(self.renewal(leases).in_current_span());
        } else {
            tasks.renew_next = Some(leases);
        }
    }

    /// Tells the worker which of its leases are lost.
    async fn send_lost(&self, lost: Vec<Lease>) -> Result<(), End> {
        self.end(&lost);
        if lost.is_empty() {
            return Ok(());
        }
        tracing::info!(lots = lost.len(), "leases lost");
        let leases = lost.into_iter().map(Into::into).collect();
        self.send(Outgoing::LeasesLost(LeasesLost { leases })).await
    }

    /// Records a failed attempt.
    fn fault(&self, fault: &v1::Fault, tasks: &mut Tasks) -> Result<(), End> {
        let lease = lease(fault.lease)?;
        self.end(&[lease]);
        let mut reason: String =
            fault.reason.chars().filter(|c| *c != '\0').take(MAX_REASON).collect();
        if reason.is_empty() {
            "the worker gave no reason".clone_into(&mut reason);
        }
        let kind = v1::FaultKind::try_from(fault.kind).map_or(FaultKind::Unknown, FaultKind::from);
        tracing::warn!(%lease, kind = kind.as_str(), reason, "attempt failed");
        let failure = Failure { lease, by: Some(self.admitted.worker), kind, reason };
        self.begin_update(LeaseUpdate::Fault(failure), tasks);
        Ok(())
    }
}

/// Whether a message was refused because it is too large, has too many parts or arrived too slowly.
/// Then the worker is still connected and gets the error.
fn is_refusal(status: &Status) -> bool {
    let codes = [Code::DeadlineExceeded, Code::InvalidArgument, Code::ResourceExhausted];
    codes.contains(&status.code())
}

/// Decodes a lease, which must be present.
fn lease(message: Option<v1::Lease>) -> Result<Lease, End> {
    let lease = convert::required("lease", message).and_then(Lease::try_from);
    Ok(lease.map_err(ServiceError::from)?)
}

/// Decodes leases.
fn leases(messages: Vec<v1::Lease>) -> Result<Vec<Lease>, End> {
    let leases: Result<Vec<_>, InvalidField> = messages.into_iter().map(Lease::try_from).collect();
    Ok(leases.map_err(ServiceError::from)?)
}
