//! What has to happen again and again: leases expire, lots are weighed, results are counted, rounds
//! of episodes are planned, editions become complete.
//!
//! # Why one failure holds up nothing else
//!
//! The work is cut into *parts*: each edition is one, trials and shadow matches are one each. A part
//! that has something to do gets a task of its own, at most one at a time. If it fails it rests,
//! longer from failure to failure, while all others go on. Within an edition leases expire even
//! where counting fails, and the other way round.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{Error, Result};
use time::OffsetDateTime;
use tokio::sync::Semaphore;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::backoff::Backoff;
use crate::bot_suspension;
use crate::database_clock::{self, Clock, Reading};
use crate::db::bots::StoodDown;
use crate::db::editions::{Edition, EditionState, Upkept};
use crate::db::lots::{self, Which};
use crate::db::{self, editions, faults, trace_contexts};
use crate::keyed_tasks::KeyedTasks;
use crate::queue::{Expired, Part, Queue};
use crate::tournament::{NextRoundError, episodes};
use arbiter_proto::ids::EditionId;
use arbiter_proto::trace::{self, Span};

/// How often it is looked what there is to do.
const ROUND: Duration = Duration::from_millis(250);
/// Parts that are worked on at the same time.
const PARTS: usize = 4;
/// If the database's clock was set forward by more than this, leases do not expire for the time of
/// one lease: workers renew them meanwhile.
const STEP: time::Duration = time::Duration::seconds(2);

/// Keeps a queue going. The leader does so; several at once do no harm (`crate::leader_election`).
#[derive(Clone, Debug)]
pub struct Maintenance {
    queue: Queue,
    clock: Clock,
    /// What was known of the faults of editions when they were looked at last.
    faults_seen: Arc<Mutex<BTreeMap<EditionId, FaultSigns>>>,
}

/// Matches set aside, the last fault, and matches counted.
type FaultSigns = (i64, i64, i64);

/// Maintenance that failed.
#[derive(Debug, thiserror::Error)]
#[error("upkeep of {part} failed: {cause}; it is tried again in {rest_ms} ms")]
pub struct MaintenanceError {
    part: String,
    #[source]
    cause: Error,
    rest_ms: u128,
}

/// What a round of upkeep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Leases that ran out and lots that woke.
    pub expired: Expired,
    /// Lots of which it was found out whether they were played for an earlier edition.
    pub weighed: u64,
    /// Matches that came into standings.
    pub counted: i64,
    /// Editions whose next round was planned.
    pub grown: Vec<EditionId>,
    /// Bots that were stood down.
    pub stood_down: Vec<StoodDown>,
    /// Editions that became complete.
    pub complete: Vec<EditionId>,
}

/// Since when workers could renew their leases.
#[derive(Debug)]
struct Renewals {
    /// How long a lease holds.
    lease: Duration,
    /// Since when they could without a break.
    since: Instant,
    /// The last reading of the database's clock.
    reading: Option<Reading>,
}

impl Renewals {
    /// Whether leases may expire where something failed last at that time: they could be renewed for
    /// as long as they hold.
    fn may_expire(&self, failed_at: Option<Instant>) -> bool {
        failed_at.map_or(self.since, |at| at.max(self.since)).elapsed() >= self.lease
    }

    /// They could not be renewed until now.
    fn begin_again(&mut self) {
        self.since = Instant::now();
    }

    /// Takes note of what time it is in the database.
    fn see(&mut self, now: Reading) {
        let step = self.reading.replace(now).map(|before| before.step_to(&now));
        if let Some(step) = step.filter(|step| *step > STEP) {
            let seconds = step.as_seconds_f64();
            tracing::warn!(seconds, "the database's clock was set forward; leases are prolonged");
            self.begin_again();
        }
    }
}

impl Maintenance {
    /// Maintenance of this queue by this clock.
    pub fn new(queue: Queue, clock: Clock) -> Self {
        Self { queue, clock, faults_seen: Arc::default() }
    }

    /// Works without end and hands over what was done, where workers could renew their leases without
    /// a break since `away`. It may be dropped at any moment.
    ///
    /// Nothing expires in a lease's time after that, nor in that after the database was away or its
    /// clock was set forward: workers could not renew their leases then.
    pub async fn run(&self, away: Instant, mut done: impl FnMut(Result<Round, MaintenanceError>)) {
        let lease = self.queue.lease_policy().lease.unsigned_abs();
        let mut renewals = Renewals { lease, since: away, reading: None };
        let free = Arc::new(Semaphore::new(PARTS));
        let mut tasks: KeyedTasks<Part, (Round, Option<Error>)> = KeyedTasks::new();
        let mut looking = Backoff::new();
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some((part, ended)) = tasks.join_next() => {
                    let failed = match ended {
                        Ok((round, failed)) => {
                            done(Ok(round));
                            failed
                        }
                        Err(panicked) => Some(Error::Decode(Box::new(panicked))),
                    };
                    let Some(cause) = failed else {
                        tasks.record_success(part, lease);
                        continue;
                    };
                    if db::is_away(&cause) {
                        renewals.begin_again();
                    }
                    let rest_ms = tasks.record_failure(part).as_millis();
                    done(Err(MaintenanceError { part: part.to_string(), cause, rest_ms }));
                    continue;
                }
                _ = rounds.tick() => {}
            }
            let due = match self.due(&mut renewals).await {
                Ok(due) => due,
                Err(cause) => {
                    renewals.begin_again();
                    let rest = looking.next();
                    let (part, rest_ms) = ("all editions".to_owned(), rest.as_millis());
                    done(Err(MaintenanceError { part, cause, rest_ms }));
                    tokio::time::sleep(rest).await;
                    continue;
                }
            };
            looking = Backoff::new();
            for (part, expires) in due {
                if tasks.is_ready(part) {
                    let expire = expires && renewals.may_expire(tasks.failed_at(part));
                    tasks.spawn(part, self.clone().in_turn(part, expire, Arc::clone(&free)));
                }
            }
        }
    }

    /// Works on a part when there is a place to do so.
    async fn in_turn(
        self,
        part: Part,
        expire: bool,
        free: Arc<Semaphore>,
    ) -> (Round, Option<Error>) {
        let _turn = free.acquire_owned().await;
        let mut round = Round::default();
        let failed = self.work_on(part, expire, &mut round).await;
        (round, failed)
    }

    /// Works once.
    ///
    /// # Errors
    /// The first failure: what failed is done the next time, everything else was done.
    pub async fn round(&self) -> Result<Round> {
        let mut round = Round::default();
        let mut failed = None;
        for (part, expires) in parts_of(&editions::upkept(self.queue.pool()).await?) {
            let error = self.work_on(part, expires, &mut round).await;
            failed = failed.or(error);
        }
        failed.map_or(Ok(round), Err)
    }

    /// What there is to do, and whether leases may have run out there.
    async fn due(&self, renewals: &mut Renewals) -> Result<Vec<(Part, bool)>> {
        let mut connection = self.queue.pool().acquire().await?;
        renewals.see(database_clock::read(&mut *connection).await?);
        let editions = editions::upkept(&mut *connection).await?;
        let running = |upkept: &&Upkept| upkept.state == EditionState::Running;
        let running: BTreeSet<_> = editions.iter().filter(running).map(|found| found.id).collect();
        self.faults_seen().retain(|edition, _| running.contains(edition));
        Ok(parts_of(&editions))
    }

    /// Works on a part, as far as it goes: each step is tried, whatever became of the one before.
    /// Returns the first failure.
    async fn work_on(&self, part: Part, expire: bool, round: &mut Round) -> Option<Error> {
        let mut failed = None;
        if expire {
            match self.queue.expire_part(part).await {
                Ok(expired) => round.expired.add(expired),
                Err(error) => failed = Some(error),
            }
        }
        if let Part::Edition(edition) = part {
            let error = self.tend(edition, round).await.err();
            failed = failed.or(error);
        }
        failed
    }

    /// Does what an edition needs.
    async fn tend(&self, edition: EditionId, round: &mut Round) -> Result<()> {
        let Some(found) = editions::get(self.queue.pool(), edition).await? else { return Ok(()) };
        match found.state {
            EditionState::Running => self.tend_running(&found, self.clock.now(), round).await?,
            EditionState::Cancelled => self.count_replaced(edition).await?,
            EditionState::Planning | EditionState::Complete => {}
        }
        lots::add_up(self.queue.pool(), edition).await
    }

    /// Cancels what is left of an edition that was replaced. Counts what was reported of it, although
    /// its standings are of no use any more: a result that a later edition takes over is chosen for
    /// an audit where it was played, when it is counted there.
    async fn count_replaced(&self, edition: EditionId) -> Result<()> {
        lots::cancel_left(self.queue.pool(), edition).await?;
        while self.queue.count_some(edition, Which::Own).await?.is_full() {}
        Ok(())
    }

    fn faults_seen(&self) -> MutexGuard<'_, BTreeMap<EditionId, FaultSigns>> {
        self.faults_seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands those down whom faults follow around, where matches are set aside: whenever something
    /// is known that was not when this was done last.
    async fn blame(
        &self,
        edition: EditionId,
        counted: i64,
        now: OffsetDateTime,
    ) -> Result<Vec<StoodDown>> {
        let (aside, last_fault) = faults::signs(self.queue.pool(), edition).await?;
        if aside == 0 {
            return Ok(Vec::new());
        }
        let before = self.faults_seen().get(&edition).copied();
        let played = before.map_or(0, |(.., played)| played) + counted;
        if before == Some((aside, last_fault, played)) {
            return Ok(Vec::new());
        }
        let stood_down =
            bot_suspension::suspend_for_faults(self.queue.pool(), edition, now).await?;
        self.faults_seen().insert(edition, (aside, last_fault, played));
        Ok(stood_down)
    }

    /// Weighs lots of an edition, counts what was reported of it, plans what follows from that, and
    /// looks whether it is complete.
    async fn tend_running(
        &self,
        state: &Edition,
        now: OffsetDateTime,
        round: &mut Round,
    ) -> Result<()> {
        let edition = state.id;
        round.weighed += self.queue.weigh(edition, state.weighs).await?;
        let before = round.counted;
        // What is reported meanwhile is for the next round: a few lots change the standings of nearly
        // as many bots as all that come in a round do.
        loop {
            let counted = self.queue.count_some(edition, Which::All).await?;
            round.counted += counted.matches;
            if !counted.is_full() {
                break;
            }
        }
        if round.counted > before {
            let stood_down =
                bot_suspension::suspend_for_forfeits(self.queue.pool(), edition, now).await?;
            round.stood_down.extend(stood_down);
        }
        round.stood_down.extend(self.blame(edition, round.counted - before, now).await?);
        if episodes::plan_next_round(&self.queue, edition).await.map_err(passed_on)? {
            round.grown.push(edition);
        }
        if self.queue.complete(edition, now).await? {
            end_trace(&self.queue, edition, state.created_at).await;
            round.complete.push(edition);
        }
        Ok(())
    }
}

/// The parts of the work, and whether leases may have run out there.
fn parts_of(editions: &[Upkept]) -> Vec<(Part, bool)> {
    let editions = editions.iter().map(|upkept| (Part::Edition(upkept.id), upkept.expires));
    [(Part::Trials, true), (Part::ShadowMatches, true)].into_iter().chain(editions).collect()
}

/// Ends the trace of an edition whose leaderboard is official from now on. It took as long as the
/// edition.
async fn end_trace(queue: &Queue, edition: EditionId, created_at: OffsetDateTime) {
    if !trace::is_on() {
        return;
    }
    // A trace that lacks its end is no reason to stop.
    let parent = trace_contexts::take_edition(queue.pool(), edition).await.ok().flatten();
    let mut span = Span::since("edition complete", parent.as_ref(), created_at.into());
    span.set("edition", i64::from(edition.0));
    tracing::debug!(%edition, trace_id = span.trace_id(), "its trace ends");
}

/// What kept a round from being planned, as upkeep tells it.
fn passed_on(error: NextRoundError) -> Error {
    match error {
        NextRoundError::Database(_, cause) => cause,
        NextRoundError::Nonsense { .. } => Error::Decode(Box::new(error)),
    }
}
