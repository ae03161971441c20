//! Hands trials and lots to workers as they ask for something to do.
//!
//! Hundreds of workers ask at their own times; the database is asked once for all who wait at a
//! moment, by one task. Nothing is leased before somebody wants it: a lease that lay about here
//! would expire without anybody's fault.
//!
//! That task has a connection of its own. Where all processors play, each question to the database
//! and each answer waits for its turn, so there are as few of them as can be. A connection of the
//! pool is tried before it is lent and looked at afterwards, and as it is another one each time, all
//! of them prepare the same statements.
//!
//! # Why one failure holds up nothing else
//!
//! Trials, shadow matches and the lots of each edition are leased one after the other, in turn. What
//! fails rests, longer from failure to failure, and the others go on at once. What was leased and
//! cannot be handed out is given back, until that succeeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::{EditionId, Lease, MatchId, MatchNumber, WorkerId};
use sqlx::{Error, PgConnection, Result};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use super::{Leased, Queue, again};
use crate::backoff::BackoffMap;
use crate::db::claimable::{self, Offers};
use crate::db::lots;
use crate::db::matches::{self, Match};
use crate::db::{self, shadows, trials};

/// Who asks may wait in line; more of them than this wait to stand in it.
const LINE: usize = 4096;
/// How often it is looked whether there is something for those who wait, although nobody has said
/// so: another coordinator may have stored what they wait for.
const LOOK: Duration = Duration::from_millis(100);
/// How often the database is asked which matches wait for a second worker, while workers ask for
/// something to do.
const SHADOW_LOOK: Duration = Duration::from_millis(500);
/// How many workers are asked in vain between two such looks: what waits may not be for them.
const MOST_VAIN: usize = 4;

/// The time that a shadow match is expected to take, in milliseconds: a guess.
const EXPECTED_MS: i32 = 1000;

/// What is leased in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Offer {
    Trials,
    ShadowMatches,
    Lots(EditionId),
    /// What is given back.
    Returns,
}

/// Something to play.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The lot.
    pub lot: Leased,
    /// Its matches, in order.
    pub matches: Vec<Match>,
}

/// Something for a worker's room.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// A version is to be tried.
    Trial(Lease),
    /// Matches are to be played.
    Lot(Work),
}

impl Task {
    /// The lease it is done under.
    pub fn lease(&self) -> Lease {
        match self {
            Self::Trial(lease) => *lease,
            Self::Lot(work) => work.lot.lease,
        }
    }

    /// The matches, if it is that.
    pub fn into_work(self) -> Option<Work> {
        match self {
            Self::Trial(_) => None,
            Self::Lot(work) => Some(work),
        }
    }
}

/// A task, and since when somebody could have had it: since he asked, or since there was something
/// new after nothing was there.
type Given = (Task, Instant);

/// Whom a task goes to.
#[derive(Debug)]
struct Waiter {
    /// The worker that is to hold the lease.
    worker: Option<WorkerId>,
    give: oneshot::Sender<Given>,
    since: Instant,
}

/// Where workers ask.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    line: mpsc::Sender<Waiter>,
    returns: mpsc::UnboundedSender<Lease>,
    news: Arc<Notify>,
}

/// Somebody who waits for a lot. What was given to them at the moment when they left goes back.
#[derive(Debug)]
struct Waiting {
    given: oneshot::Receiver<Given>,
    dispatcher: Dispatcher,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.given.close();
        if let Ok((task, _)) = self.given.try_recv() {
            self.dispatcher.take_back(task.lease());
        }
    }
}

/// A lease on its way to its worker: it goes back if this is dropped before it is sent.
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
            self.dispatcher.take_back(lease);
        }
    }
}

/// Leases for those who ask.
#[derive(Debug)]
pub struct Allocator {
    queue: Queue,
    line: mpsc::Receiver<Waiter>,
    /// Leases of lots that nobody took.
    returns: mpsc::UnboundedReceiver<Lease>,
    /// Leases that are to be given back.
    unwanted: Vec<Lease>,
    /// What failed lately.
    backoffs: BackoffMap<Offer>,
    news: Arc<Notify>,
    waiting: VecDeque<Waiter>,
    /// When there was reason to look again after nothing had been there.
    woken: Instant,
    /// The edition served last: the next one has its turn first.
    last: Option<EditionId>,
    /// The workers that reported the matches which wait for a second worker, and when the database
    /// was asked for them.
    first_workers: BTreeSet<WorkerId>,
    first_workers_at: Option<Instant>,
    /// The worker that was asked last whether it plays one of them: the next one has its turn first.
    last_worker: Option<WorkerId>,
    /// Its own connection, once there is one, and as long as nothing fails on it. It may live for
    /// ever: what its session remembers is a plan for each of our statements.
    own: Option<PgConnection>,
}

impl Dispatcher {
    /// A place to ask, and the allocator that is to run beside it.
    pub fn new(queue: Queue) -> (Self, Allocator) {
        let (sender, line) = mpsc::channel(LINE);
        let (returned, returns) = mpsc::unbounded_channel();
        let news = Arc::new(Notify::new());
        let dispatcher = Self { line: sender, returns: returned, news: Arc::clone(&news) };
        let allocator = Allocator {
            queue,
            line,
            returns,
            unwanted: Vec::new(),
            backoffs: BackoffMap::new(),
            news,
            waiting: VecDeque::new(),
            woken: Instant::now(),
            last: None,
            first_workers: BTreeSet::new(),
            first_workers_at: None,
            last_worker: None,
            own: None,
        };
        (dispatcher, allocator)
    }

    /// Waits for something to try or to play, leased to no worker in particular; nothing once the
    /// allocator is gone. A caller that stops waiting is given nothing.
    pub async fn next(&self) -> Option<Task> {
        self.next_for(None).await.map(|(task, _)| task)
    }

    /// The same for a worker that holds the lease, with the moment since when it could have been
    /// given.
    pub async fn next_for(&self, worker: Option<WorkerId>) -> Option<(Task, Instant)> {
        let (give, given) = oneshot::channel();
        let mut waiting = Waiting { given, dispatcher: self.clone() };
        self.line.send(Waiter { worker, give, since: Instant::now() }).await.ok()?;
        (&mut waiting.given).await.ok()
    }

    /// Holds a lease that was given, so that it goes back unless it is sent.
    pub(crate) fn hold(&self, lease: Lease) -> Unsent {
        Unsent { lease: Some(lease), dispatcher: self.clone() }
    }

    fn take_back(&self, lease: Lease) {
        // Where the allocator is gone, the lease runs out.
        self.returns.send(lease).ok();
        self.news.notify_one();
    }

    /// Says that there may be something new to lease.
    pub fn news(&self) {
        self.news.notify_one();
    }
}

impl Allocator {
    /// Leases for those who ask, until every [`Dispatcher`] is gone, or until `stop`, for which those
    /// who ask should have left: what was leased for them is given back before the end. Failures are
    /// handed over, and what failed is tried again.
    pub async fn run(mut self, stop: impl Future<Output = ()>, mut failed: impl FnMut(Error)) {
        let mut stop = pin!(stop);
        loop {
            let goes_on = tokio::select! {
                biased;
                () = &mut stop => false,
                gathered = self.gather() => gathered,
            };
            if !goes_on {
                break;
            }
            self.take_back(&mut failed).await;
            let before = self.waiting.len();
            self.serve(&mut failed).await;
            if self.waiting.len() == before && before > 0 {
                // Nothing there: something new, or somebody new, or a look every now and then.
                tokio::select! {
                    () = self.news.notified() => {}
                    asker = self.line.recv() => match asker {
                        Some(asker) => self.waiting.push_back(asker),
                        None => break,
                    },
                    () = tokio::time::sleep(LOOK) => {}
                }
                self.woken = Instant::now();
            }
        }
        self.backoffs.clear();
        self.take_back(&mut failed).await;
    }

    /// Lets all who ask stand in line; whether anybody may still come.
    async fn gather(&mut self) -> bool {
        self.waiting.retain(|asker| !asker.give.is_closed());
        while self.waiting.is_empty() && self.returns.is_empty() {
            let returns_again = self.backoffs.retry_at(Offer::Returns);
            tokio::select! {
                () = sleep_until(returns_again.unwrap_or_else(Instant::now)),
                    if !self.unwanted.is_empty() => return true,
                asker = self.line.recv() => match asker {
                    Some(asker) => self.waiting.push_back(asker),
                    None => return false,
                },
                () = self.news.notified() => {}
            }
        }
        while let Ok(asker) = self.line.try_recv() {
            self.waiting.push_back(asker);
        }
        true
    }

    /// Gives back what was leased for those who have left; what fails here is tried again.
    async fn take_back(&mut self, failed: &mut impl FnMut(Error)) {
        while let Ok(lease) = self.returns.try_recv() {
            self.unwanted.push(lease);
        }
        if self.unwanted.is_empty() || self.backoffs.is_waiting(Offer::Returns) {
            return;
        }
        let given_back = self.queue.give_back(None, &self.unwanted).await.map(drop);
        if given_back.is_ok() {
            self.unwanted.clear();
        }
        self.note(Offer::Returns, given_back, failed);
    }

    /// Takes note of what came of an offer: what failed rests.
    fn note(&mut self, offer: Offer, came: Result<()>, failed: &mut impl FnMut(Error)) {
        if let Err(error) = came {
            self.backoffs.record_failure(offer);
            failed(error);
        } else {
            self.backoffs.record_success(offer, Duration::ZERO);
        }
    }

    /// Leases once for those who wait: trials first, since an author waits for each and what passes
    /// changes what is to be played; then from the first edition in turn that has something. Those
    /// who come meanwhile come along the next time, and the more they are the less each costs.
    async fn serve(&mut self, failed: &mut impl FnMut(Error)) {
        if self.waiting.is_empty() {
            return;
        }
        let Offers { trial, mut editions } = match self.look().await {
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
            self.note(offer, leased.map(drop), failed);
            if is_enough {
                return;
            }
        }
    }

    /// What there is. If the own connection was cut while no worker asked, that is no failure.
    async fn look(&mut self) -> Result<Offers> {
        if let Some(mut own) = self.own.take() {
            match claimable::look(&mut own).await {
                Err(error) if db::is_passing(&error) => {}
                looked => {
                    self.own = Some(own);
                    return looked;
                }
            }
        }
        let mut fresh = self.connect().await?;
        let offers = claimable::look(&mut fresh).await?;
        self.own = Some(fresh);
        Ok(offers)
    }

    /// Leases what is offered; whether anything was. The own connection stays if nothing failed.
    async fn lease(&mut self, offer: Offer) -> Result<bool> {
        let own = match self.own.take() {
            Some(own) => own,
            None => self.connect().await?,
        };
        let (own, leased) = match offer {
            Offer::Trials => self.lease_trials(own).await?,
            Offer::ShadowMatches => self.lease_shadows(own).await?,
            Offer::Lots(edition) => self.lease_lots(own, edition).await?,
            Offer::Returns => (own, false),
        };
        self.own = Some(own);
        Ok(leased)
    }

    async fn connect(&self) -> Result<PgConnection> {
        Ok(self.queue.pool().acquire().await?.detach())
    }

    /// Leases trials, as long as there are some.
    async fn lease_trials(&mut self, mut own: PgConnection) -> Result<(PgConnection, bool)> {
        let mut leased = false;
        while let Some(worker) = self.waiting.front().map(|asker| asker.worker) {
            let lease = trials::claim(&mut own, worker, self.queue.lease_policy.lease).await?;
            let Some(lease) = lease else { break };
            leased = true;
            self.queue.metrics.record_leases(&[lease]);
            let unwanted = self.give(worker, Task::Trial(lease));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok((own, leased))
    }

    /// Leases lots of an edition to all who wait.
    async fn lease_lots(
        &mut self,
        mut own: PgConnection,
        edition: EditionId,
    ) -> Result<(PgConnection, bool)> {
        let holders: Vec<_> = self.waiting.iter().map(|asker| asker.worker).collect();
        let lots = lots::claim(&mut own, edition, &holders, self.queue.lease_policy.lease).await?;
        if lots.is_empty() {
            return Ok((own, false));
        }
        let leases: Vec<_> = lots.iter().map(|lot| lot.lease).collect();
        self.queue.metrics.record_leases(&leases);
        self.last = Some(edition);
        Ok((self.hand_out(own, edition, lots).await?, true))
    }

    /// Leases matches that other workers have played, before lots: they are few, and the sooner a
    /// worker is found to differ the less it can do.
    async fn lease_shadows(&mut self, mut own: PgConnection) -> Result<(PgConnection, bool)> {
        let mut leased = false;
        if self.first_workers_at.is_none_or(|at| at.elapsed() >= SHADOW_LOOK) {
            self.first_workers = shadows::waiting(&mut own).await?.into_iter().collect();
            self.first_workers_at = Some(Instant::now());
        }
        let mut vain = 0;
        for (worker, room) in self.rooms() {
            if self.first_workers.iter().all(|first| *first == worker) {
                continue;
            }
            self.last_worker = Some(worker);
            let leases =
                shadows::claim(&mut own, worker, room, self.queue.lease_policy.lease).await?;
            leased |= !leases.is_empty();
            vain += usize::from(leases.len() < room);
            self.queue.metrics.record_leases(&leases);
            let mut by_edition: BTreeMap<EditionId, Vec<Leased>> = BTreeMap::new();
            for lease in leases {
                if let Some(MatchId { edition, number }) = lease.shadow() {
                    by_edition.entry(edition).or_default().push(as_lot(lease, number, worker));
                }
            }
            for (edition, lots) in by_edition {
                own = self.hand_out(own, edition, lots).await?;
            }
            if vain == MOST_VAIN {
                self.first_workers.clear();
                break;
            }
        }
        Ok((own, leased))
    }

    /// How many tasks each worker waits for, from the one whose turn it is to play a match that
    /// another one has played; nothing if there are no such matches.
    fn rooms(&self) -> Vec<(WorkerId, usize)> {
        let mut rooms: BTreeMap<WorkerId, usize> = BTreeMap::new();
        if !self.first_workers.is_empty() {
            for worker in self.waiting.iter().filter_map(|asker| asker.worker) {
                *rooms.entry(worker).or_default() += 1;
            }
        }
        let mut rooms: Vec<_> = rooms.into_iter().collect();
        let after = rooms.partition_point(|(worker, _)| Some(*worker) <= self.last_worker);
        rooms.rotate_left(after);
        rooms
    }

    /// Gives lots to those who wait; what the holder does not want any more is given back.
    async fn hand_out(
        &mut self,
        mut own: PgConnection,
        edition: EditionId,
        lots: Vec<Leased>,
    ) -> Result<PgConnection> {
        let read = match matches::of_lots(&mut own, edition, &lots).await {
            Err(error) if db::is_passing(&error) => {
                let read = async || {
                    let mut fresh = self.connect().await?;
                    let planned = matches::of_lots(&mut fresh, edition, &lots).await?;
                    Ok((fresh, planned))
                };
                again(read).await
            }
            read => read.map(|planned| (own, planned)),
        };
        let (own, planned) = match read {
            Ok(read) => read,
            Err(error) => {
                // They are leased already, and no worker will ever renew them.
                self.unwanted.extend(lots.iter().map(|lot| lot.lease));
                return Err(error);
            }
        };
        let mut planned = planned.into_iter();
        for lot in lots {
            let count = usize::try_from(lot.count).unwrap_or(0);
            let work = Work { lot, matches: planned.by_ref().take(count).collect() };
            let unwanted = self.give(lot.holder, Task::Lot(work));
            self.unwanted.extend(unwanted.map(|task| task.lease()));
        }
        Ok(own)
    }

    /// Gives a task to the worker that holds its lease, where it waits longest and is still there;
    /// the task, if it is not.
    fn give(&mut self, holder: Option<WorkerId>, mut task: Task) -> Option<Task> {
        let mut from = 0;
        while let Some(place) = self.waiting.range(from..).position(|asker| asker.worker == holder)
        {
            from += place;
            let Some(asker) = self.waiting.remove(from) else { break };
            match asker.give.send((task, asker.since.max(self.woken))) {
                Ok(()) => return None,
                Err((unwanted, _)) => task = unwanted,
            }
        }
        Some(task)
    }
}

/// A shadow match in the form of a lot of one match.
fn as_lot(lease: Lease, first: MatchNumber, holder: WorkerId) -> Leased {
    // Its report is compared with the first one, which says how wide the scores are.
    let width = 0;
    Leased { lease, first, count: 1, width, expected_ms: EXPECTED_MS, holder: Some(holder) }
}
