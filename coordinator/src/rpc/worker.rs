//! Workers: lots go out to them and reports come in, over one stream each.
//!
//! # Theory of operation
//!
//! A session is one stream. It asks the dispatcher once for every match the worker has room for,
//! and sends what it is given; takes reports in, as many at a time as come, and sends each one's
//! verdict; renews leases, takes them back, and takes note of faults. Nothing about a lease is kept
//! here: a worker that comes back over another stream, or to another coordinator, renews and
//! reports as before. A lot that cannot be sent any more is given back at once; one that was on its
//! way when the stream broke runs out and is leased again.
//!
//! The task of a session reads and writes messages and waits for nothing else. Renewing, storing and
//! everything else that asks the database has tasks of its own (`worker/lease_tasks.rs`), so that one that
//! waits for a lock keeps no other from its end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arbiter_proto::convert::{self, Meaningless};
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::Lease;
use arbiter_proto::v1;
use arbiter_proto::v1::coordinator_message::Payload as Answer;
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
use super::clients::{ResponseStream, split_request};
use super::codec;
use crate::access::open_tokens::{OpenToken, OpenTokens};
use crate::access::token_throttle::Origin;
use crate::access::{Role, Secret};
use crate::connection_limit::Connection;
use crate::metrics::GaugeGuard;
use crate::queue::{Failure, WorkerStream};
use crate::service::{AdmittedWorker, MAX_SLOTS, ServiceError, WorkerService, suspended};
use crate::tournament::lot_assignment::StateBudget;
use crate::tournament::score_check::LotCheck;

mod assignments;
mod lease_tasks;
mod send_queue;

use assignments::Asked;
use lease_tasks::Note;
use send_queue::SendQueue;

/// How long a worker may take to say hello.
const HELLO: Duration = Duration::from_secs(10);
/// Messages that may wait for a worker to take them.
const WAITING: usize = 64;
/// How often in the time of a lease it is looked whether a worker's token is still good.
const CHECKS: u32 = 3;
/// Messages of a worker that are being noted at a time, at most: it is not listened to meanwhile.
const NOTES: usize = 64;
/// The longest reason of a fault that is kept, in characters.
const REASON: usize = 1000;

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
        let connection = connection.map(|known| Arc::clone(&known.connection));
        let (caller, mut inbound) = split_request(request);
        let who = caller.require(Role::Worker)?;
        let hello = hello(&mut inbound).await?;
        let greeted = self.workers.admit(who.id, &hello).await?;
        let span = tracing::info_span!("worker", worker = %greeted.worker, called = hello.name);
        let (outbound, answers) = send_queue::channel(WAITING);
        let session = Session {
            files: self.workers.assignments.state_budget(),
            token: Arc::new(self.open_tokens.register(&secret, true)),
            workers: self.workers.clone(),
            checks: Mutex::default(),
            greeted,
            secret,
            origin,
            memory,
            connection,
            outbound,
        };
        tokio::spawn(session.run(inbound).instrument(span));
        Ok(Response::new(Box::pin(answers)))
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
    let first = tokio::time::timeout(HELLO, inbound.message()).await;
    let first = first.map_err(|_| Status::deadline_exceeded("no hello came"))??;
    match first.and_then(|message| message.payload) {
        Some(Payload::Hello(hello)) => Ok(hello),
        _ => Err(Status::invalid_argument("a worker says hello first")),
    }
}

/// One stream of one worker.
struct Session {
    workers: WorkerService,
    greeted: AdmittedWorker,
    /// Says when its token ends.
    token: Arc<OpenToken>,
    secret: Secret,
    origin: Origin,
    /// The memory of the last message.
    memory: Reservation,
    /// The connection, if it is known.
    connection: Option<Arc<Connection>>,
    /// The memory of files that lots are handed out with.
    files: StateBudget,
    /// What the reports of the lots are checked against that were handed out over this stream.
    checks: Mutex<HashMap<Lease, LotCheck>>,
    outbound: SendQueue,
}

/// What goes on beside the reading of a stream.
#[derive(Default)]
struct Tasks {
    /// Asking for something to do, one task for each free place.
    asking: JoinSet<Option<Asked>>,
    /// Storing reports.
    reporting: JoinSet<Result<ReportResponse, ServiceError>>,
    /// Renewing leases, one message after the other.
    renewing: JoinSet<Result<Vec<Lease>, End>>,
    /// What is to be renewed next: what came last.
    renew_next: Option<Vec<Lease>>,
    /// Taking leases back, and taking note of faults.
    noting: JoinSet<()>,
    /// Waiting for what ends the session from outside. It has its own task, so that the messages,
    /// which wake the session often, need not ask for it each time.
    ending: JoinSet<End>,
}

/// Why a session ends.
enum End {
    /// The worker has left, or its stream broke.
    Left,
    /// It is sent away.
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
        let held = self.workers.service.playing.of(self.stream());
        self.workers.service.playing.leave(self.stream());
        self.workers.disconnect(self.greeted.worker, self.greeted.stream).await;
        match end {
            End::Left => tracing::info!("gone"),
            End::Refused(status) => {
                tracing::warn!(reason = status.message(), "sent away");
                if matches!(status.code(), Code::Unauthenticated | Code::FailedPrecondition) {
                    // It will not come back, and what it has leased is no match's fault.
                    tokio::spawn(self.note(Note::GiveBack(held)).in_current_span());
                }
                // It may have left meanwhile.
                drop(self.outbound.send(Err(status), None).await);
            }
        }
    }

    /// How long a lease lasts, in milliseconds.
    fn lease_ms(&self) -> i64 {
        i64::try_from(self.workers.service.lease.whole_milliseconds()).unwrap_or(i64::MAX)
    }

    fn stream(&self) -> WorkerStream {
        (self.greeted.worker, self.greeted.stream)
    }

    fn checks(&self) -> MutexGuard<'_, HashMap<Lease, LotCheck>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These leases were handed out over this stream, or renewed over it.
    fn begin(&self, leases: &[Lease]) {
        self.workers.service.playing.begin(self.stream(), leases);
    }

    /// Nothing more is expected of these leases.
    fn end(&self, leases: &[Lease]) {
        self.workers.service.playing.end(self.stream(), leases);
        let mut checks = self.checks();
        for lease in leases {
            checks.remove(lease);
        }
    }

    /// Keeps what the report of a lot is to be checked against. A worker that neither reports nor
    /// renews fills no memory: what is not kept is read again.
    fn keep_check(&self, lease: Lease, check: LotCheck) {
        let mut checks = self.checks();
        if checks.len() < MAX_SLOTS as usize {
            checks.insert(lease, check);
        }
    }

    async fn serve(&self, inbound: &mut Streaming<WorkerMessage>) -> End {
        let lease = self.workers.service.lease.unsigned_abs();
        let mut tasks = Tasks::default();
        let (worker, database) = (self.greeted.worker.0, self.greeted.database.clone());
        let lease_ms = self.lease_ms();
        let mut done = self.say(Answer::Welcome(Welcome { worker, lease_ms, database })).await;
        tasks.ending.spawn(self.ended(lease / CHECKS).in_current_span());
        while done.is_ok() {
            done = tokio::select! {
                message = inbound.message(), if tasks.noting.len() < NOTES => match message {
                    Ok(Some(message)) => self.heard(message, &mut tasks),
                    Err(status) if is_refusal(&status) => Err(status.into()),
                    Ok(None) | Err(_) => Err(End::Left),
                },
                Some(asked) = tasks.asking.join_next() => match asked {
                    Ok(Some(asked)) => self.hand_out(asked, &mut tasks).await,
                    // The allocator is gone: we stop.
                    _ => Err(Status::unavailable("the coordinator stops").into()),
                },
                Some(stored) = tasks.reporting.join_next() => match stored {
                    Ok(Ok(verdict)) => self.judged(verdict).await,
                    Ok(Err(status)) => Err(status.into()),
                    Err(_) => Err(Status::internal("a report could not be stored").into()),
                },
                Some(renewed) = tasks.renewing.join_next() => {
                    let next = tasks.renew_next.take();
                    if let Some(leases) = next {
                        self.renew(leases, &mut tasks);
                    }
                    match renewed {
                        Ok(Ok(lost)) => self.say_lost(lost).await,
                        Ok(Err(end)) => Err(end),
                        Err(_) => Err(Status::internal("leases could not be renewed").into()),
                    }
                }
                Some(_) = tasks.noting.join_next() => Ok(()),
                Some(end) = tasks.ending.join_next() => Err(end.unwrap_or(End::Left)),
            };
        }
        self.take_back_all(tasks.asking).await;
        // What the worker said last is done all the same.
        tasks.noting.detach_all();
        done.err().unwrap_or(End::Left)
    }

    /// Gives back what was leased for this worker and cannot be sent any more.
    async fn take_back_all(&self, mut asking: JoinSet<Option<Asked>>) {
        // Those that are not done give back by themselves what they have or might still be given.
        asking.abort_all();
        let mut leases = Vec::new();
        while let Some(asked) = asking.join_next().await {
            leases.extend(asked.ok().flatten().map(|asked| asked.lease));
        }
        if !leases.is_empty() {
            tokio::spawn(self.note(Note::GiveBack(leases)).in_current_span());
        }
    }

    async fn say(&self, say: Answer) -> Result<(), End> {
        let message = CoordinatorMessage { payload: Some(say) };
        self.outbound.send(Ok(message), None).await.map_err(|_| End::Left)
    }

    /// Does what a worker asks for.
    fn heard(&self, message: WorkerMessage, tasks: &mut Tasks) -> Result<(), End> {
        if let Some(reason) = self.workers.service.suspensions.reason(self.greeted.worker) {
            return Err(suspended(&reason).into());
        }
        match message.payload {
            Some(Payload::Capacity(room)) => {
                let asked = u32::try_from(tasks.asking.len()).unwrap_or(u32::MAX);
                if room.slots > MAX_SLOTS.saturating_sub(asked) {
                    let error = format!("a worker has room for at most {MAX_SLOTS} matches");
                    return Err(Status::invalid_argument(error).into());
                }
                (0..room.slots).for_each(|_| self.ask(tasks));
                Ok(())
            }
            Some(Payload::Report(report)) => self.report(report, tasks),
            Some(Payload::RenewLeases(renew)) => {
                self.renew(leases(renew.leases)?, tasks);
                Ok(())
            }
            Some(Payload::ReturnLeases(given)) => {
                let given = leases(given.leases)?;
                self.end(&given);
                self.charge(given.len());
                self.begin_note(Note::GiveBack(given), tasks);
                Ok(())
            }
            Some(Payload::Fault(fault)) => self.fault(&fault, tasks),
            Some(Payload::Hello(_)) => Err(Status::invalid_argument("hello is said once").into()),
            None => Err(Status::invalid_argument("a message without meaning").into()),
        }
    }

    /// Takes note of how many leases the worker gives back.
    fn charge(&self, leases: usize) {
        if let Some(wait) = self.workers.lease_returns.record(
            self.greeted.worker,
            self.greeted.slots,
            leases,
            Instant::now(),
        ) {
            let wait_s = wait.as_secs();
            tracing::warn!(
                leases,
                wait_s,
                "gives back too much: it gets nothing to do for a while"
            );
        }
    }

    /// Begins to store a report.
    fn report(&self, report: v1::Report, tasks: &mut Tasks) -> Result<(), End> {
        let (lease, came) = (lease(report.lease)?, Instant::now());
        // It is free for other reports when this one is stored.
        let memory = self.memory.take();
        let check = self.checks().remove(&lease);
        self.workers.service.playing.end(self.stream(), &[lease]);
        let workers = self.workers.clone();
        let now = workers.service.now();
        let delivery = codec::delivery(self.greeted.worker, lease, report, now);
        let storing = workers.store_delivery(delivery, check.as_ref(), came);
        let store = async move {
            let _memory = memory;
            storing.await
        };
        tasks.reporting.spawn(store.in_current_span());
        Ok(())
    }

    /// Says what became of a report.
    async fn judged(&self, verdict: ReportResponse) -> Result<(), End> {
        // It may have been renewed since it was reported.
        if let Ok(lease) = lease(verdict.lease) {
            self.workers.service.playing.end(self.stream(), &[lease]);
        }
        self.say(Answer::ReportResponse(verdict)).await
    }

    /// Renews leases as soon as the renewal before has ended: the last message says it all.
    fn renew(&self, leases: Vec<Lease>, tasks: &mut Tasks) {
        if tasks.renewing.is_empty() {
            tasks.renewing.spawn(self.renewal(leases).in_current_span());
        } else {
            tasks.renew_next = Some(leases);
        }
    }

    /// Tells the worker which of its leases no longer hold.
    async fn say_lost(&self, lost: Vec<Lease>) -> Result<(), End> {
        self.end(&lost);
        if lost.is_empty() {
            return Ok(());
        }
        tracing::info!(lots = lost.len(), "leases no longer hold");
        let leases = lost.into_iter().map(Into::into).collect();
        self.say(Answer::LeasesLost(LeasesLost { leases })).await
    }

    /// Takes note of an attempt that failed.
    fn fault(&self, fault: &v1::Fault, tasks: &mut Tasks) -> Result<(), End> {
        let lease = lease(fault.lease)?;
        self.end(&[lease]);
        let reason: String = fault.reason.chars().filter(|c| *c != '\0').take(REASON).collect();
        let reason = if reason.is_empty() { "no reason was given".to_owned() } else { reason };
        let kind = v1::FaultKind::try_from(fault.kind).map_or(FaultKind::Unknown, FaultKind::from);
        tracing::warn!(%lease, kind = kind.as_str(), reason, "an attempt failed");
        let failure = Failure { lease, by: Some(self.greeted.worker), kind, reason };
        self.begin_note(Note::Fault(failure), tasks);
        Ok(())
    }
}

/// Whether a message was not taken in, and its sender still listens: it has too many bytes or parts,
/// or came too slowly.
fn is_refusal(status: &Status) -> bool {
    let codes = [Code::DeadlineExceeded, Code::InvalidArgument, Code::ResourceExhausted];
    codes.contains(&status.code())
}

/// A lease, which must be given.
fn lease(message: Option<v1::Lease>) -> Result<Lease, End> {
    let read = convert::given("lease", message).and_then(Lease::try_from);
    Ok(read.map_err(ServiceError::from)?)
}

/// Leases.
fn leases(messages: Vec<v1::Lease>) -> Result<Vec<Lease>, End> {
    let read: Result<Vec<_>, Meaningless> = messages.into_iter().map(Lease::try_from).collect();
    Ok(read.map_err(ServiceError::from)?)
}
