//! The use cases of workers: register, lease lots and trials, fetch bundles, renew and return
//! leases, report.
//!
//! `rpc` has the stream of a worker. This module stores no leases in memory, so a worker can
//! reconnect to any coordinator and continue.

use std::sync::Arc;

use arbiter_games::RULES_VERSION;
use arbiter_proto::convert;
use arbiter_proto::ids::{Lease, TokenId, VersionId, WorkerId};
use arbiter_proto::v1::{self, FetchBundleRequest, Hello, Runtime};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::lease_return_limit::LeaseReturnLimiter;
use super::{Caller, Parts, Principal, ResponseStream, Result, Service, ServiceError};
use crate::access::Role;
use crate::db::{lease_details, packages, worker_runtimes, worker_suspensions, workers};
use crate::match_audit::Auditor;
use crate::queue::ReportSender;
use crate::tournament::lot_assignment::{AssignmentBuilder, AssignmentError};
use crate::tournament::trial_assignment;

/// Maximum number of slots of a worker. A larger number must be a mistake.
pub(crate) const MAX_SLOTS: u32 = 4096;
/// The longest name of a worker, in bytes.
const MAX_NAME: usize = 128;
/// Maximum length of the descriptions of a worker's build and sandbox, in bytes.
const MAX_DESCRIPTION: usize = 2048;

/// The use cases of workers. Clones are the same service.
#[derive(Clone, Debug)]
pub struct WorkerService {
    /// The use cases of clients.
    pub(crate) service: Service,
    /// Builds the messages that assign lots.
    pub(crate) assignments: Arc<AssignmentBuilder>,
    pub(super) reporter: ReportSender,
    /// Limits the leases that workers return.
    pub(crate) lease_returns: LeaseReturnLimiter,
}

/// A worker that was admitted on a stream.
#[derive(Debug)]
pub(crate) struct AdmittedWorker {
    pub(crate) worker: WorkerId,
    /// Matches that it can play at the same time.
    pub(crate) slots: u32,
    /// The number of this stream among the worker's streams.
    pub(crate) stream: i32,
    /// The identity of the coordinator's database.
    pub(crate) database: String,
}

impl WorkerService {
    /// The use cases of workers, with those of clients.
    pub fn new(
        service: Service,
        assignments: Arc<AssignmentBuilder>,
        reporter: ReportSender,
    ) -> Self {
        Self { service, assignments, reporter, lease_returns: LeaseReturnLimiter::default() }
    }

    /// Admits a worker with this token. Then the name of the worker belongs to the token.
    pub(crate) async fn admit(&self, token: TokenId, hello: &Hello) -> Result<AdmittedWorker> {
        check_hello(hello)?;
        let pool = self.service.queue.pool();
        let now = self.service.now();
        let Hello { name, build, sandbox, .. } = hello;
        let Some(worker) = workers::register(pool, token, name, sandbox, build, now).await? else {
            tracing::warn!(%token, name, "worker refused: its name belongs to another token");
            let owner = workers::owner(pool, name).await?;
            let owner = owner.map_or_else(|| "TOKEN".to_owned(), |owner| owner.to_string());
            return Err(ServiceError::failed_precondition(format!(
                "worker name {name:?} belongs to another token: start this worker with another \
                 --name, or free the name with `arbiter token revoke {owner}`"
            )));
        };
        if let Some(reason) = worker_suspensions::reason(pool, worker).await? {
            return Err(suspended(&reason));
        }
        let slots = hello.slots.min(MAX_SLOTS);
        let runtimes = announced_runtimes(&hello.runtimes);
        worker_runtimes::set(&mut *pool.acquire().await?, worker, &runtimes).await?;
        let stream = workers::connect(pool, worker, slots, now).await?;
        let database = workers::database(pool).await?;
        Ok(AdmittedWorker { worker, slots, stream, database })
    }

    /// Records that a worker's stream has ended. An error has little effect: without new signs of
    /// life the worker counts as disconnected after a time.
    pub(crate) async fn disconnect(&self, worker: WorkerId, stream: i32) {
        drop(workers::disconnect(self.service.queue.pool(), worker, stream).await);
    }

    /// Records a sign of life of a worker. An error has no effect, because the next one follows
    /// soon.
    pub(crate) async fn mark_seen(&self, worker: WorkerId) {
        drop(workers::record_contact(self.service.queue.pool(), worker, self.service.now()).await);
    }

    /// Streams the bundle of a version. A worker with this token must hold a lease that needs it,
    /// unless it is a game package.
    pub(crate) async fn fetch_bundle(
        &self,
        caller: &Caller,
        request: FetchBundleRequest,
    ) -> Result<ResponseStream<Vec<u8>>> {
        let Principal { id, .. } = caller.require(Role::Worker)?;
        let digest = convert::bytes32("digest", &request.digest)?;
        let pool = self.service.queue.pool();
        let is_allowed = packages::is_package(pool, &digest).await?
            || lease_details::needs_bundle(pool, *id, &digest).await?;
        if !is_allowed {
            let digest = blake3::Hash::from_bytes(digest);
            tracing::warn!(token = %id, %digest, "bundle refused: no lease needs it");
            self.service.metrics().bundles_refused.inc();
            return Err(ServiceError::permission_denied(
                "the workers of this token hold no lease that needs this bundle",
            ));
        }
        let pieces = self.service.bundles.stream(pool, digest).await?;
        let pieces = pieces.ok_or_else(|| {
            ServiceError::new(super::ErrorKind::NotFound, "there is no bundle with this digest")
        })?;
        Ok(Box::pin(ReceiverStream::new(pieces).map(|piece| Ok(piece?))))
    }

    /// The message that assigns a trial.
    pub(crate) async fn trial_assignment(
        &self,
        lease: Lease,
        version: VersionId,
        lease_ms: i64,
    ) -> Result<v1::Trial, AssignmentError> {
        let queue = &self.service.queue;
        trial_assignment::assignment(queue.pool(), queue.games(), lease, version, lease_ms).await
    }

    /// The auditor of workers' reports.
    pub(crate) fn auditor(&self) -> Auditor {
        let Parts { queue, store, clock, .. } = &*self.service;
        let assignments = Arc::clone(&self.assignments);
        Auditor::new(queue.pool().clone(), store.clone(), assignments, clock.clone())
    }
}

/// Refuses a worker that this coordinator does not support.
fn check_hello(hello: &Hello) -> Result<()> {
    if hello.rules != RULES_VERSION {
        return Err(ServiceError::failed_precondition(format!(
            "the worker has version {} of the rules and this coordinator version {RULES_VERSION}; \
             install the same version of arbiter on both",
            hello.rules
        )));
    }
    // Pages show the names of workers, so two different names must not look the same.
    let is_printable =
        !hello.name.is_empty() && hello.name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_printable || hello.name.len() > MAX_NAME {
        return Err(ServiceError::invalid_argument(format!(
            "a worker's name has 1 to {MAX_NAME} ASCII letters, digits and signs, and no spaces: \
             start this worker with another --name"
        )));
    }
    if [&hello.build, &hello.sandbox].iter().any(|text| text.len() > MAX_DESCRIPTION) {
        return Err(ServiceError::invalid_argument(format!(
            "the descriptions of a worker's build and sandbox have at most {MAX_DESCRIPTION} bytes"
        )));
    }
    Ok(())
}

/// Maximum number of interpreters and compilers of a worker.
const MAX_RUNTIMES: usize = 32;
/// Maximum length of the name and of the version of one, in bytes.
const MAX_RUNTIME_TEXT: usize = 32;

/// Whether a text can be the name of an interpreter or compiler, without a folder.
pub(crate) fn is_program_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    (1..=MAX_RUNTIME_TEXT).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// The interpreters and compilers that a worker announced, each once. Workers are not trusted, and
/// pages show these texts: others than plain names and versions are left out.
fn announced_runtimes(runtimes: &[Runtime]) -> Vec<Runtime> {
    let mut known: Vec<Runtime> = Vec::new();
    for runtime in runtimes.iter().take(MAX_RUNTIMES) {
        let is_known = known.iter().any(|other| other.program == runtime.program);
        if is_program_name(&runtime.program) && is_program_name(&runtime.version) && !is_known {
            known.push(runtime.clone());
        }
    }
    known
}

/// The refusal of a suspended worker. Only organisers see the reason.
pub(crate) fn suspended(reason: &str) -> ServiceError {
    tracing::warn!(reason, "suspended worker refused");
    ServiceError::failed_precondition(
        "this worker is suspended: it gets no work, and its reports are refused; ask the organiser \
         (arbiter workers)",
    )
}
