//! What workers do: say hello, take lots and trials, fetch bundles, renew, give back and report.
//!
//! A worker's stream is kept by `rpc`; nothing about a lease is kept here. A worker that comes back
//! over another stream, or to another coordinator, goes on as before.

use std::ops::Deref;
use std::sync::Arc;

use arbiter_games::RULES_VERSION;
use arbiter_proto::convert;
use arbiter_proto::ids::{Lease, TokenId, VersionId, WorkerId};
use arbiter_proto::v1::{FetchBundleRequest, Hello};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use super::bundles::BundlePieces;
use super::returns::Returns;
use super::{Answers, Caller, Parts, Principal, Result, Service, ServiceError};
use crate::access::Role;
use crate::db::{active_leases, suspensions, workers};
use crate::match_audit::Auditor;
use crate::queue::ReportSender;
use crate::tournament::handout::Handout;
use crate::tournament::trial::{self, TrialAssignment, TrialError};

/// The most slots that one worker may have: more is a mistake.
pub(crate) const MOST_SLOTS: u32 = 4096;
/// The longest name of a worker, in bytes.
const MOST_NAME: usize = 128;
/// The longest description of a worker's build, and of its sandbox, in bytes: they are stored.
const MOST_DESCRIPTION: usize = 2048;

/// The use cases of workers. Clones are the same service.
#[derive(Clone, Debug)]
pub struct WorkerService(Arc<WorkerParts>);

/// What the use cases of workers work with.
#[derive(Debug)]
pub struct WorkerParts {
    /// The use cases of clients.
    pub(crate) service: Service,
    /// Makes messages of lots and trials.
    pub(crate) handout: Arc<Handout>,
    pub(super) reporter: ReportSender,
    /// How much workers give back.
    pub(crate) returns: Returns,
    bundles: BundlePieces,
}

impl Deref for WorkerService {
    type Target = WorkerParts;

    fn deref(&self) -> &WorkerParts {
        &self.0
    }
}

/// A worker that was let in over a stream.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) worker: WorkerId,
    /// How many matches it can play at the same time.
    pub(crate) slots: u32,
    /// Which of the worker's streams this is.
    pub(crate) stream: i32,
    /// Which database it works for.
    pub(crate) database: String,
}

impl WorkerService {
    /// The use cases of workers beside those of clients.
    pub fn new(service: Service, handout: Arc<Handout>, reporter: ReportSender) -> Self {
        let (returns, bundles) = (Returns::default(), BundlePieces::default());
        Self(Arc::new(WorkerParts { service, handout, reporter, returns, bundles }))
    }

    /// Lets a worker in that says hello with this token. Its name belongs to the token from then on.
    pub(crate) async fn greet(&self, token: TokenId, hello: &Hello) -> Result<Greeted> {
        check(hello)?;
        let (pool, now) = (self.service.queue.pool(), self.service.now());
        let Hello { name, build, sandbox, .. } = hello;
        let Some(worker) = workers::greet(pool, token, name, sandbox, build, now).await? else {
            tracing::warn!(%token, name, "refused: the worker's name belongs to another token");
            let owner = workers::owner(pool, name).await?;
            let owner = owner.map_or_else(|| "TOKEN".to_owned(), |owner| owner.to_string());
            return Err(ServiceError::failed_precondition(format!(
                "worker name {name:?} belongs to another token: start this worker with another \
                 --name, or free the name with `arbiter token revoke {owner}`"
            )));
        };
        if let Some(reason) = suspensions::reason(pool, worker).await? {
            return Err(suspended(&reason));
        }
        let slots = hello.slots.min(MOST_SLOTS);
        let stream = workers::connect(pool, worker, slots, now).await?;
        let database = workers::database(pool).await?;
        Ok(Greeted { worker, slots, stream, database })
    }

    /// A worker's stream has ended. If this fails, the worker is soon not seen any more.
    pub(crate) async fn leave(&self, worker: WorkerId, stream: i32) {
        drop(workers::disconnect(self.service.queue.pool(), worker, stream).await);
    }

    /// Notes that a worker is there. If this fails, it is not seen for a while.
    pub(crate) async fn see(&self, worker: WorkerId) {
        drop(workers::see(self.service.queue.pool(), worker, self.service.now()).await);
    }

    /// The bundle of a version in a lot or a trial that a worker with this token has leased, in
    /// pieces.
    pub(crate) async fn fetch_bundle(
        &self,
        caller: &Caller,
        request: FetchBundleRequest,
    ) -> Result<Answers<Vec<u8>>> {
        let Principal { id, .. } = caller.require(Role::Worker)?;
        let digest = convert::bytes32("digest", &request.digest)?;
        let pool = self.service.queue.pool();
        if !active_leases::needs_bundle(pool, *id, &digest).await? {
            let asked = blake3::Hash::from_bytes(digest);
            tracing::warn!(token = %id, digest = %asked, "refused: a bundle without a lease");
            self.service.metrics().bundles_refused.inc();
            return Err(ServiceError::permission_denied(
                "no lot or trial that this token's workers have leased needs this bundle",
            ));
        }
        let found = self.bundles.stream(pool, digest).await?;
        let pieces = found.ok_or_else(|| {
            ServiceError::new(super::ErrorKind::NotFound, "there is no bundle of this digest")
        })?;
        Ok(Box::pin(ReceiverStream::new(pieces).map(|piece| Ok(piece?))))
    }

    /// What a worker is told of a version that it is to try.
    pub(crate) async fn trial(
        &self,
        lease: Lease,
        version: VersionId,
        lease_ms: i64,
    ) -> Result<TrialAssignment, TrialError> {
        let queue = &self.service.queue;
        trial::assignment(queue.pool(), queue.games(), lease, version, lease_ms).await
    }

    /// Looks a second time at what workers report.
    pub(crate) fn auditor(&self) -> Auditor {
        let Parts { queue, store, clock, .. } = &*self.service;
        let handout = Arc::clone(&self.handout);
        Auditor::new(queue.pool().clone(), store.clone(), handout, clock.clone())
    }
}

/// Refuses a worker that cannot work for this coordinator.
fn check(hello: &Hello) -> Result<()> {
    if hello.rules != RULES_VERSION {
        return Err(ServiceError::failed_precondition(format!(
            "the worker plays by version {} of the rules, and this coordinator by version \
             {RULES_VERSION}; install the same version of arbiter on both",
            hello.rules
        )));
    }
    // Pages show names: two that look alike must not be two names.
    let is_name = !hello.name.is_empty() && hello.name.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_name || hello.name.len() > MOST_NAME {
        return Err(ServiceError::invalid_argument(format!(
            "a worker's name has 1 to {MOST_NAME} letters (a to z, A to Z), digits and signs, and no \
             blanks: start this worker with another --name"
        )));
    }
    if [&hello.build, &hello.sandbox].iter().any(|said| said.len() > MOST_DESCRIPTION) {
        return Err(ServiceError::invalid_argument(format!(
            "a worker says at most {MOST_DESCRIPTION} bytes of its build and of its sandbox"
        )));
    }
    Ok(())
}

/// The refusal of a suspended worker: how its reports are judged is for organisers to see.
pub(crate) fn suspended(reason: &str) -> ServiceError {
    tracing::warn!(reason, "a suspended worker is refused");
    ServiceError::failed_precondition(
        "this worker is suspended: it gets nothing to play, and its reports are refused; ask the \
         organiser (arbiter workers)",
    )
}
