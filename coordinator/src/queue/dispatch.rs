//! Dispatches trials and lots to workers that request work.
//!
//! Hundreds of workers request work independently. One task, the allocator, claims work from the
//! database for all workers that wait at a moment. It leases only what a worker waits for: an
//! unclaimed lease would expire and count as a fault.
//!
//! The allocator has a separate connection. On a machine whose processors all play matches, each
//! round trip to the database is slow, so there are as few as possible. The pool would test a
//! connection before and after each use, and every connection would prepare the same statements.
//!
//! # Why a failure delays nothing else
//!
//! Trials, shadow matches and the lots of each edition are leased in turn. After a failure that kind
//! of work waits before it is retried, longer with each failure; the others continue. Leases that
//! cannot be dispatched are returned, with retries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::{EditionId, Lease, MatchId, MatchNumber, WorkerId};
use sqlx::{Error, PgConnection, Result};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::{Leased, Queue, retry};
use crate::backoff::BackoffMap;
use crate::db::claimable::{self, Offers};
use crate::db::lots;
use crate::db::matches::{self, Match};
use crate::db::{self, shadows, trials};

/// Maximum number of requests in the channel. Further requests wait.
const QUEUE_LEN: usize = 4096;
/// How often the database is polled while workers wait: another coordinator may have stored work.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often the database is queried for shadow matches while workers wait.
const SHADOW_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// After this many workers without a shadow match, the next query is awaited: the remaining matches
/// may not be for them.
const MAX_MISSES: usize = 4;

/// The expected time of a shadow match, in milliseconds: a rough guess.
const EXPECTED_MS: i32 = 1000;

/// A kind of work that is leased in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Offer {
    Trials,
    ShadowMatches,
    Lots(EditionId),
    /// Leases to return.
    Returns,
}

/// A lot to play.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The lot.
    pub lot: Leased,
    /// Its matches, in order.
    pub matches: Vec<Match>,
}

/// Work for one slot.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A trial of a version.
    Trial(Lease),
    /// Matches to play.
    Lot(Work),
}

impl Task {
    /// The lease of this task.
    pub fn lease(&self) -> Lease {
        match self {
            Self::Trial(lease) => *lease,
            Self::Lot(work) => work.lot.lease,
        }
    }

    /// The lot, if it is one.
    pub fn into_work(self) -> Option<Work> {
        match self {
            Self::Trial(_) => None,
            Self::Lot(work) => Some(work),
        }
    }
}

/// A task, and the start of the wait for it: when the worker asked, or when work became available,
/// whichever was later.
type Assignment = (Task, Instant);

/// A request for work.
#[derive(Debug)]
struct Waiter {
    /// The future holder of the lease.
    worker: Option<WorkerId>,
    task_sender: oneshot::Sender<Assignment>,
    since: Instant,
}

/// Sends requests for work to the allocator.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    requests: mpsc::Sender<Waiter>,
    returns: mpsc::UnboundedSender<Lease>,
    news: Arc<Notify>,
}

/// A pending request. A task that arrives when the request is cancelled is returned.
#[derive(Debug)]
struct Waiting {
    assignment: oneshot::Receiver<Assignment>,
    dispatcher: Dispatcher,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.assignment.close();
        if let Ok((task, _)) = self.assignment.try_recv() {
            self.dispatcher.return_lease(task.lease());
        }
    }
}

/// A lease on its way to its worker. It is returned if this is dropped before it is sent.
#[derive(Debug)]
pub(crate) struct Unsent {
    lease: Option<Lease>,
    dispatcher: Dispatcher,
}

impl Unsent {
    /// The caller is responsible for the lease from now on.
    pub(crate) fn release(mut self) {
        self.lease = None;
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.dispatcher.return_lease(lease);
        }
    }
}

/// Leases work for the requests of a [`Dispatcher`].
#[derive(Debug)]
pub struct Allocator {
    queue: Queue,
    requests: mpsc::Receiver<Waiter>,
    /// Leases whose requests were cancelled.
    returns: mpsc::UnboundedReceiver<Lease>,
    /// Leases to return.
    unwanted: Vec<Lease>,
    /// Recent failures.
    backoffs: BackoffMap<Offer>,
    news: Arc<Notify>,
    waiting: VecDeque<Waiter>,
    /// When work may have become available after there was none.
    work_available_at: Instant,
    /// The edition that was served last; the next one comes first now.
    last: Option<EditionId>,
    /// The workers that reported matches which wait for a shadow match, and when they were read.
    first_workers: BTreeSet<WorkerId>,
    first_workers_at: Option<Instant>,
    /// The worker that was last considered for a shadow match; the next one comes first now.
    last_worker: Option<WorkerId>,
    /// The allocator's connection, until a statement fails on it. Its session may last without end:
    /// it accumulates only one plan a statement.
    connection: Option<PgConnection>,
}

impl Dispatcher {
    /// A dispatcher, and its allocator, which the caller must run.
    pub fn new(queue: Queue) -> (Self, Allocator) {
        let (sender, requests) = mpsc::channel(QUEUE_LEN);
        let (returned, returns) = mpsc::unbounded_channel();
        let news = Arc::new(Notify::new());
        let dispatcher = Self { requests: sender, returns: returned, news: Arc::clone(&news) };
        let allocator = Allocator {
            queue,
            requests,
            returns,
            unwanted: Vec::new(),
            backoffs: BackoffMap::new(),
            news,
            waiting: VecDeque::new(),
            work_available_at: Instant::now(),
            last: None,
            first_workers: BTreeSet::new(),
            first_workers_at: None,
            last_worker: None,
            connection: None,
        };
        (dispatcher, allocator)
    }

    /// Waits for a task, leased without a holder; `None` once the allocator is gone. Cancel safe.
    pub async fn next(&self) -> Option<Task> {
        self.next_for(None).await.map(|(task, _)| task)
    }

    /// The same for a worker that becomes the holder; also returns the start of the wait.
    pub async fn next_for(&self, worker: Option<WorkerId>) -> Option<(Task, Instant)> {
        let (task_sender, assignment) = oneshot::channel();
        let mut waiting = Waiting { assignment, dispatcher: self.clone() };
        self.requests.send(Waiter { worker, task_sender, since: Instant::now() }).await.ok()?;
        (&mut waiting.assignment).await.ok()
    }

    /// Returns the lease unless [`Unsent::release`] is called.
    pub(crate) fn hold(&self, lease: Lease) -> Unsent {
        Unsent { lease: Some(lease), dispatcher: self.clone() }
    }

    fn return_lease(&self, lease: Lease) {
        // If the allocator is gone, the lease expires.
        self.returns.send(lease).ok();
        self.news.notify_one();
    }

    /// Notifies the allocator that there may be new work.
    pub fn news(&self) {
        self.news.notify_one();
    }
}

impl Allocator {
    /// Serves requests until every [`Dispatcher`] is dropped, or until `stop`. Unclaimed leases are
    /// returned at the end, so requests should be cancelled before `stop`. Calls `failed` for each
    /// failure; failed work is retried.
    pub async fn run(mut self, stop: impl Future<Output = ()>, mut failed: impl FnMut(Error)) {
        let mut stop = pin!(stop);
        loop {
            let has_more = tokio::select! {
                biased;
                () = &mut stop => false,
                gathered = self.gather() => gathered,
            };
            if !has_more {
                break;
            }
            self.return_unwanted(&mut failed).await;
            let before = self.waiting.len();
            self.serve(&mut failed).await;
            if self.waiting.len() == before && before > 0 {
                // No work: wait for news, for another request, or until the next poll.
                tokio::select! {
                    () = self.news.notified() => {}
                    waiter = self.requests.recv() => match waiter {
                        Some(waiter) => self.waiting.push_back(waiter),
                        None => break,
                    },
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                }
                self.work_available_at = Instant::now();
            }
        }
        self.backoffs.clear();
        self.return_unwanted(&mut failed).await;
    }

    /// Collects all requests. Returns whether more may come.
    async fn gather(&mut self) -> bool {
        self.waiting.retain(|waiter| !waiter.task_sender.is_closed());
        while self.waiting.is_empty() && self.returns.is_empty() {
            let returns_again = self.backoffs.retry_at(Offer::Returns);
            tokio::select! {
                () = sleep_until(returns_again.unwrap_or_else(Instant::now)),
                    if !self.unwanted.is_empty() => return true,
                waiter = self.requests.recv() => match waiter {
                    Some(waiter) => self.waiting.push_back(waiter),
                    None => return false,
                },
                () = self.news.notified() => {}
            }
        }
        while let Ok(waiter) = self.requests.try_recv() {
            self.waiting.push_back(waiter);
        }
        true
    }

    /// Returns the leases of cancelled requests. Failures are retried.
    async fn return_unwanted(&mut self, failed: &mut impl FnMut(Error)) {
        while let Ok(lease) = self.returns.try_recv() {
            self.unwanted.push(lease);
        }
        if self.unwanted.is_empty() || self.backoffs.is_waiting(Offer::Returns) {
            return;
        }
        let returned = self.queue.return_leases(None, &self.unwanted).await.map(drop);
        if returned.is_ok() {
            self.unwanted.clear();
        }
        self.record_result(Offer::Returns, returned, failed);
    }

    /// Records the result of an offer.
    fn record_result(&mut self, offer: Offer, result: Result<()>, failed: &mut impl FnMut(Error)) {
        if let Err(error) = result {
            self.backoffs.record_failure(offer);
            failed(error);
        } else {
            self.backoffs.record_success(offer, Duration::ZERO);
        }
    }

    /// Leases once for the waiting requests: trials first, since authors wait for them and they
    /// change what is played; then lots of the next edition that has some. Requests that arrive
    /// meanwhile are served in the next round, together.
    async fn serve(&mut self, failed: &mut impl FnMut(Error)) {
        if self.waiting.is_empty() {
            return;
        }
        let Offers { trial, mut editions } = match self.read_offers().await {
            Ok(offers) => offers,
            Err(error) => return failed(error),
        };
        let after = editions.partition_point(|edition| Some(*edition) <= self.last);
        editions.rotate_left(after);
        let lots = editions.into_iter().map(Offer::Lots);
        let offers = trial.then_some(Offer::Trials).into_iter();
        for offer in offers.chain([Offer::ShadowMatches]).chain(lots) {
            if self.waiting.is_empty() {
                return;
            }
            if self.backoffs.is_waiting(offer) {
                continue;
            }
            let leased = self.lease(offer).await;
            let is_enough = matches!((&leased, offer), (Ok(true), Offer::Lots(_)));
            self.record_result(offer, leased.map(drop), failed);
            if is_enough {
                return;
            }
        }
    }

    /// Reads the available work. A connection that broke while idle is replaced.
    async fn read_offers(&mut self) -> Result<Offers> {
        if let Some(mut connection) = self.connection.take() {
            match claimable::find(&mut connection).await {
                Err(error) if db::is_passing(&error) => {}
                offers => {
                    self.connection = Some(connection);
                    return offers;
                }
            }
        }
        let mut fresh = self.connect().await?;
        let offers = claimable::find(&mut fresh).await?;
        self.connection = Some(fresh);
        Ok(offers)
    }

    /// Leases an offer. Returns whether anything was leased. The connection is dropped on failure.
    async fn lease(&mut self, offer: Offer) -> Result<bool> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let (connection, leased) = match offer {
            Offer::Trials => self.lease_trials(connection).await?,
            Offer::ShadowMatches => self.lease_shadows(connection).await?,
            Offer::Lots(edition) => self.lease_lots(connection, edition).await?,
            Offer::Returns => (connection, false),
        };
        self.connection = Some(connection);
        Ok(leased)
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(self.queue.pool().acquire().await?.detach())
    }

    /// Leases trials while there are any.
    async fn lease_trials(&mut self, mut connection: PgConnection) -> Result<(PgConnection, bool)> {
        let mut leased = false;
        while let Some(worker) = self.waiting.front().map(|waiter| waiter.worker) {
            let lease =
                trials::claim(&mut connection, worker, self.queue.lease_policy.lease).await?;
            let Some(lease) = lease else { break };
            leased = true;
            self.queue.metrics.record_leases(&[lease]);
            let unwanted = self.send(worker, Task::Trial(lease));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok((connection, leased))
    }

    /// Leases lots of an edition for all waiting requests.
    async fn lease_lots(
        &mut self,
        mut connection: PgConnection,
        edition: EditionId,
    ) -> Result<(PgConnection, bool)> {
        let holders: Vec<_> = self.waiting.iter().map(|waiter| waiter.worker).collect();
        let lots =
            lots::claim(&mut connection, edition, &holders, self.queue.lease_policy.lease).await?;
        if lots.is_empty() {
            return Ok((connection, false));
        }
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        self.queue.metrics.record_leases(&leases);
        self.last = Some(edition);
        Ok((self.hand_out(connection, edition, lots).await?, true))
    }

    /// Leases shadow matches, before lots: they are few, and the sooner a dishonest worker is found,
    /// the less harm it does.
    async fn lease_shadows(
        &mut self,
        mut connection: PgConnection,
    ) -> Result<(PgConnection, bool)> {
        let mut leased = false;
        if self.first_workers_at.is_none_or(|at| at.elapsed() >= SHADOW_POLL_INTERVAL) {
            self.first_workers = shadows::waiting(&mut connection).await?.into_iter().collect();
            self.first_workers_at = Some(Instant::now());
        }
        let mut misses = 0;
        for (worker, count) in self.open_requests() {
            if self.first_workers.iter().all(|first| *first == worker) {
                continue;
            }
            self.last_worker = Some(worker);
            let leases =
                shadows::claim(&mut connection, worker, count, self.queue.lease_policy.lease)
                    .await?;
            leased |= !leases.is_empty();
            misses += usize::from(leases.len() < count);
            self.queue.metrics.record_leases(&leases);
            let mut by_edition: BTreeMap<EditionId, Vec<Leased>> = BTreeMap::new();
            for lease in leases {
                if let Some(MatchId { edition, number }) = lease.shadow() {
                    by_edition.entry(edition).or_default().push(as_lot(lease, number, worker));
                }
            }
            for (edition, lots) in by_edition {
                connection = self.hand_out(connection, edition, lots).await?;
            }
            if misses == MAX_MISSES {
                self.first_workers.clear();
                break;
            }
        }
        Ok((connection, leased))
    }

    /// How many tasks each worker waits for, starting with the next in turn for a shadow match;
    /// empty if there are no shadow matches.
    fn open_requests(&self) -> Vec<(WorkerId, usize)> {
        let mut requests: BTreeMap<WorkerId, usize> = BTreeMap::new();
        if !self.first_workers.is_empty() {
            for worker in self.waiting.iter().filter_map(|waiter| waiter.worker) {
                *requests.entry(worker).or_default() += 1;
            }
        }
        let mut requests: Vec<_> = requests.into_iter().collect();
        let after = requests.partition_point(|(worker, _)| Some(*worker) <= self.last_worker);
        requests.rotate_left(after);
        requests
    }

    /// Sends lots to their holders. Lots whose requests were cancelled are returned.
    async fn hand_out(
        &mut self,
        mut connection: PgConnection,
        edition: EditionId,
        lots: Vec<Leased>,
    ) -> Result<PgConnection> {
        let read = match matches::of_lots(&mut connection, edition, &lots).await {
            Err(error) if db::is_passing(&error) => {
                let read = async || {
                    let mut fresh = self.connect().await?;
                    let planned = matches::of_lots(&mut fresh, edition, &lots).await?;
                    Ok((fresh, planned))
                };
                retry(read).await
            }
            result => result.map(|planned| (connection, planned)),
        };
        let (connection, planned) = match read {
            Ok(read) => read,
            Err(error) => {
                // They are leased already, but no worker knows of them.
                self.unwanted.extend(lots.iter().map(|lot| lot.lease));
                return Err(error);
            }
        };
        let mut planned = planned.into_iter();
        for lot in lots {
            let count = usize::try_from(lot.count).unwrap_or(0);
            let work = Work { lot, matches: planned.by_ref().take(count).collect() };
            let unwanted = self.send(lot.holder, Task::Lot(work));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok(connection)
    }

    /// Sends a task to the oldest open request of its holder. Returns the task if there is none.
    fn send(&mut self, holder: Option<WorkerId>, mut task: Task) -> Option<Task> {
        let mut from = 0;
        while let Some(place) =
            self.waiting.range(from..).position(|waiter| waiter.worker == holder)
        {
            from += place;
            let Some(waiter) = self.waiting.remove(from) else { break };
            match waiter.task_sender.send((task, waiter.since.max(self.work_available_at))) {
                Ok(()) => return None,
                Err((unwanted, _)) => task = unwanted,
            }
        }
        Some(task)
    }
}

/// A shadow match as a lot of one match.
fn as_lot(lease: Lease, first_match: MatchNumber, holder: WorkerId) -> Leased {
    // Its report is compared with the first one, which gives the length of the scores.
    let score_len = 0;
    Leased {
        lease,
        first_match,
        count: 1,
        score_len,
        expected_ms: EXPECTED_MS,
        holder: Some(holder),
    }
}
