//! Dispatches trials and lots to workers that request work.
//!
//! Hundreds of workers request work independently. One task, the allocator, claims work from the
//! database for all waiting workers together. It leases work only for waiting workers: an unclaimed
//! lease would expire and count as a fault.
//!
//! The allocator has a separate connection. On a machine whose processors all play matches, each
//! round trip to the database is slow, so the allocator makes as few as possible. The pool would
//! test a connection before and after each use, and every connection would prepare the same
//! statements.
//!
//! # Why a failure delays nothing else
//!
//! Trials, shadow matches and the lots of each tournament are leased in turn. After a failure that
//! kind of work waits before it is retried, longer with each failure. The other kinds continue.
//! Leases that cannot be dispatched are returned, with retries.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::{Lease, TournamentId, WorkerId};
use sqlx::{Error, PgConnection, Result};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::{LeasedLot, Queue, retry};
use crate::backoff::BackoffMap;
use crate::db::claimable::{self, ClaimableWork};
use crate::db::lots;
use crate::db::matches::{self, Match};
use crate::db::{self, shadows, trials};

/// Maximum number of requests in the channel. Further requests wait.
const QUEUE_LEN: usize = 4096;
/// How often the database is polled while workers wait: another coordinator may have stored work.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How often the database is queried for shadow matches while workers wait.
const SHADOW_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// After this many workers without a shadow match, the allocator waits for the next query: perhaps
/// no connected worker is allowed to play the remaining matches.
const MAX_MISSES: usize = 4;

/// The expected time of a shadow match, in milliseconds: a rough guess.
const EXPECTED_MS: i32 = 1000;

/// A kind of work that is leased in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum WorkKind {
    Trials,
    ShadowMatches,
    Lots(TournamentId),
    /// Leases to return.
    Returns,
}

/// A lot to play.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The lot.
    pub lot: LeasedLot,
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

    /// The lot, if the task is a lot.
    pub fn into_work(self) -> Option<Work> {
        match self {
            Self::Trial(_) => None,
            Self::Lot(work) => Some(work),
        }
    }
}

/// A task, and the start of the wait for it: the time of the request, or the time when work became
/// available, whichever was later.
type Assignment = (Task, Instant);

/// A request for work.
#[derive(Debug)]
struct Waiter {
    /// The worker that becomes the holder of the lease.
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

/// A lease that is not yet sent to its worker. The lease is returned when this value is dropped.
#[derive(Debug)]
pub(crate) struct Unsent {
    lease: Option<Lease>,
    dispatcher: Dispatcher,
}

impl Unsent {
    /// Makes the caller responsible for the lease.
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
    backoffs: BackoffMap<WorkKind>,
    news: Arc<Notify>,
    waiting: VecDeque<Waiter>,
    /// The last time at which new work may have become available.
    work_available_at: Instant,
    /// The tournament that was served last. The next tournament is served first.
    last_tournament: Option<TournamentId>,
    /// The workers that reported matches which wait for a shadow match.
    first_workers: BTreeSet<WorkerId>,
    /// When `first_workers` was read.
    first_workers_at: Option<Instant>,
    /// The last worker that was considered for a shadow match. The next worker is considered first.
    last_worker: Option<WorkerId>,
    /// The allocator's connection, until a statement fails on it. The session has no time limit,
    /// since it stores only one plan for each statement.
    connection: Option<PgConnection>,
}

impl Dispatcher {
    /// A dispatcher, and its allocator, which the caller must run.
    pub fn new(queue: Queue) -> (Self, Allocator) {
        let (sender, requests) = mpsc::channel(QUEUE_LEN);
        let (returns_sender, returns) = mpsc::unbounded_channel();
        let news = Arc::new(Notify::new());
        let dispatcher =
            Self { requests: sender, returns: returns_sender, news: Arc::clone(&news) };
        let allocator = Allocator {
            queue,
            requests,
            returns,
            unwanted: Vec::new(),
            backoffs: BackoffMap::new(),
            news,
            waiting: VecDeque::new(),
            work_available_at: Instant::now(),
            last_tournament: None,
            first_workers: BTreeSet::new(),
            first_workers_at: None,
            last_worker: None,
            connection: None,
        };
        (dispatcher, allocator)
    }

    /// Waits for a task, leased without a holder. Returns `None` after the allocator has stopped.
    /// Cancel safe.
    pub async fn next(&self) -> Option<Task> {
        self.next_for(None).await.map(|(task, _)| task)
    }

    /// Waits for a task for a worker, which becomes the holder. Also returns the start of the wait.
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
        // If the allocator has stopped, the lease expires.
        self.returns.send(lease).ok();
        self.news.notify_one();
    }

    /// Notifies the allocator that there may be new work.
    pub fn news(&self) {
        self.news.notify_one();
    }
}

impl Allocator {
    /// Serves requests until every [`Dispatcher`] is dropped, or until `stop` completes. Returns
    /// unclaimed leases at the end, so callers should cancel their requests before `stop`. Calls
    /// `on_error` for each failure. Failed work is retried.
    pub async fn run(mut self, stop: impl Future<Output = ()>, mut on_error: impl FnMut(Error)) {
        let mut stop = pin!(stop);
        loop {
            let has_more = tokio::select! {
                biased;
                () = &mut stop => false,
                has_more = self.gather() => has_more,
            };
            if !has_more {
                break;
            }
            self.return_unwanted(&mut on_error).await;
            let waiting_before = self.waiting.len();
            self.serve(&mut on_error).await;
            if self.waiting.len() == waiting_before && waiting_before > 0 {
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
        self.return_unwanted(&mut on_error).await;
    }

    /// Waits for requests or returned leases, and collects all requests. Returns whether the
    /// channel is still open.
    async fn gather(&mut self) -> bool {
        self.waiting.retain(|waiter| !waiter.task_sender.is_closed());
        while self.waiting.is_empty() && self.returns.is_empty() {
            let return_retry_at = self.backoffs.retry_at(WorkKind::Returns);
            tokio::select! {
                () = sleep_until(return_retry_at.unwrap_or_else(Instant::now)),
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
    async fn return_unwanted(&mut self, on_error: &mut impl FnMut(Error)) {
        while let Ok(lease) = self.returns.try_recv() {
            self.unwanted.push(lease);
        }
        if self.unwanted.is_empty() || self.backoffs.is_waiting(WorkKind::Returns) {
            return;
        }
        let result = self.queue.return_leases(None, &self.unwanted).await.map(drop);
        if result.is_ok() {
            self.unwanted.clear();
        }
        self.record_result(WorkKind::Returns, result, on_error);
    }

    /// Records the result of a step of work.
    fn record_result(
        &mut self,
        kind: WorkKind,
        result: Result<()>,
        on_error: &mut impl FnMut(Error),
    ) {
        if let Err(error) = result {
            self.backoffs.record_failure(kind);
            on_error(error);
        } else {
            self.backoffs.record_success(kind, Duration::ZERO);
        }
    }

    /// Leases work once for the waiting requests. Trials come first, since authors wait for them.
    /// Then come shadow matches, and lots of the next tournament that has pending lots. Requests
    /// that arrive meanwhile are served together in the next round.
    async fn serve(&mut self, on_error: &mut impl FnMut(Error)) {
        if self.waiting.is_empty() {
            return;
        }
        let ClaimableWork { trial, mut tournaments } = match self.read_claimable().await {
            Ok(work) => work,
            Err(error) => return on_error(error),
        };
        let next = tournaments.partition_point(|id| Some(*id) <= self.last_tournament);
        tournaments.rotate_left(next);
        let lots = tournaments.into_iter().map(WorkKind::Lots);
        let trials = trial.then_some(WorkKind::Trials).into_iter();
        for kind in trials.chain([WorkKind::ShadowMatches]).chain(lots) {
            if self.waiting.is_empty() {
                return;
            }
            if self.backoffs.is_waiting(kind) {
                continue;
            }
            let leased = self.lease(kind).await;
            let is_enough = matches!((&leased, kind), (Ok(true), WorkKind::Lots(_)));
            self.record_result(kind, leased.map(drop), on_error);
            if is_enough {
                return;
            }
        }
    }

    /// Reads the available work. A connection that broke while idle is replaced.
    async fn read_claimable(&mut self) -> Result<ClaimableWork> {
        if let Some(mut connection) = self.connection.take() {
            match claimable::find(&mut connection).await {
                Err(error) if db::is_transient(&error) => {}
                result => {
                    self.connection = Some(connection);
                    return result;
                }
            }
        }
        let mut connection = self.connect().await?;
        let work = claimable::find(&mut connection).await?;
        self.connection = Some(connection);
        Ok(work)
    }

    /// Leases work of one kind. Returns whether anything was leased. On failure, drops the
    /// connection.
    async fn lease(&mut self, kind: WorkKind) -> Result<bool> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let leased = match kind {
            WorkKind::Trials => self.lease_trials(&mut connection).await?,
            WorkKind::ShadowMatches => self.lease_shadows(&mut connection).await?,
            WorkKind::Lots(tournament) => self.lease_lots(&mut connection, tournament).await?,
            WorkKind::Returns => false,
        };
        self.connection = Some(connection);
        Ok(leased)
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(self.queue.pool().acquire().await?.detach())
    }

    /// Leases trials while there are any.
    async fn lease_trials(&mut self, connection: &mut PgConnection) -> Result<bool> {
        let mut leased = false;
        while let Some(worker) = self.waiting.front().map(|waiter| waiter.worker) {
            let duration = self.queue.lease_policy.lease;
            let lease = trials::claim(&mut *connection, worker, duration).await?;
            let Some(lease) = lease else { break };
            leased = true;
            self.queue.metrics.record_leases(&[lease]);
            let unwanted = self.send(worker, Task::Trial(lease));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok(leased)
    }

    /// Leases lots of a tournament for all waiting requests.
    async fn lease_lots(
        &mut self,
        connection: &mut PgConnection,
        tournament: TournamentId,
    ) -> Result<bool> {
        let holders: Vec<_> = self.waiting.iter().map(|waiter| waiter.worker).collect();
        let duration = self.queue.lease_policy.lease;
        let lots = lots::claim(&mut *connection, tournament, &holders, duration).await?;
        if lots.is_empty() {
            return Ok(false);
        }
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        self.queue.metrics.record_leases(&leases);
        self.last_tournament = Some(tournament);
        self.hand_out(connection, tournament, lots).await?;
        Ok(true)
    }

    /// Leases shadow matches. They come before lots, since they are few, and a dishonest worker
    /// should be detected soon.
    async fn lease_shadows(&mut self, connection: &mut PgConnection) -> Result<bool> {
        let mut leased = false;
        if self.first_workers_at.is_none_or(|at| at.elapsed() >= SHADOW_POLL_INTERVAL) {
            self.first_workers = shadows::waiting(&mut *connection).await?.into_iter().collect();
            self.first_workers_at = Some(Instant::now());
        }
        let mut misses = 0;
        for (worker, count) in self.open_requests() {
            if self.first_workers.iter().all(|first| *first == worker) {
                continue;
            }
            self.last_worker = Some(worker);
            let duration = self.queue.lease_policy.lease;
            let leases = shadows::claim(&mut *connection, worker, count, duration).await?;
            leased |= !leases.is_empty();
            misses += usize::from(leases.len() < count);
            self.queue.metrics.record_leases(&leases);
            let mut by_tournament: BTreeMap<TournamentId, Vec<LeasedLot>> = BTreeMap::new();
            for lease in leases {
                if let Some(id) = lease.shadow() {
                    by_tournament.entry(id.tournament).or_default().push(as_lot(lease, worker));
                }
            }
            for (tournament, lots) in by_tournament {
                self.hand_out(&mut *connection, tournament, lots).await?;
            }
            if misses == MAX_MISSES {
                self.first_workers.clear();
                break;
            }
        }
        Ok(leased)
    }

    /// The number of requests of each worker, starting with the worker after `last_worker`. Empty
    /// if no shadow matches are waiting.
    fn open_requests(&self) -> Vec<(WorkerId, usize)> {
        let mut requests: BTreeMap<WorkerId, usize> = BTreeMap::new();
        if !self.first_workers.is_empty() {
            for worker in self.waiting.iter().filter_map(|waiter| waiter.worker) {
                *requests.entry(worker).or_default() += 1;
            }
        }
        let mut requests: Vec<_> = requests.into_iter().collect();
        let next = requests.partition_point(|(worker, _)| Some(*worker) <= self.last_worker);
        requests.rotate_left(next);
        requests
    }

    /// Sends lots to their holders. Lots whose requests were cancelled are returned.
    async fn hand_out(
        &mut self,
        connection: &mut PgConnection,
        tournament: TournamentId,
        lots: Vec<LeasedLot>,
    ) -> Result<()> {
        let mut planned = matches::of_lots(&mut *connection, tournament, &lots).await;
        if planned.as_ref().is_err_and(db::is_transient) {
            let pool = self.queue.pool();
            planned = retry(|| matches::of_lots(pool, tournament, &lots)).await;
            // Its successor serves what follows. Without one, that fails for the same reason.
            if let Ok(replacement) = self.connect().await {
                *connection = replacement;
            }
        }
        if planned.is_err() {
            // The lots are leased already, but no worker has received them.
            self.unwanted.extend(lots.iter().map(|lot| lot.lease));
        }
        let mut planned = planned?.into_iter();
        for lot in lots {
            let count = usize::try_from(lot.count).unwrap_or(0);
            let work = Work { lot, matches: planned.by_ref().take(count).collect() };
            let unwanted = self.send(lot.holder, Task::Lot(work));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok(())
    }

    /// Sends a task to the oldest open request of its holder. Returns the task if there is none.
    fn send(&mut self, holder: Option<WorkerId>, mut task: Task) -> Option<Task> {
        let mut index = 0;
        while let Some(offset) =
            self.waiting.range(index..).position(|waiter| waiter.worker == holder)
        {
            index += offset;
            let Some(waiter) = self.waiting.remove(index) else { break };
            match waiter.task_sender.send((task, waiter.since.max(self.work_available_at))) {
                Ok(()) => return None,
                Err((unwanted, _)) => task = unwanted,
            }
        }
        Some(task)
    }
}

/// A shadow match as a lot of one match.
fn as_lot(lease: Lease, holder: WorkerId) -> LeasedLot {
    // The length of the scores is unknown here. The report is compared with the first report.
    let score_len = 0;
    let holder = Some(holder);
    LeasedLot { lease, edition: None, count: 1, score_len, expected_ms: EXPECTED_MS, holder }
}
