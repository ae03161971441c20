//! Periodic work on the queue: expire leases, check lots for reuse, count results, plan rounds of
//! episodes, complete editions.
//!
//! # Why a failure delays nothing else
//!
//! The work is split into *parts*: each edition is one, trials and shadow matches are one each. A
//! part gets a separate task, at most one at a time. After a failure it waits before the retry,
//! longer with each failure, while the others continue. Within an edition, leases expire even if
//! counting fails, and vice versa.

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

/// The time between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of parts that are worked on at the same time.
const MAX_CONCURRENT_PARTS: usize = 4;
/// If the database's clock was set forward by more than this, no lease expires for the duration of
/// a lease, so that workers can renew theirs.
const MAX_CLOCK_STEP: time::Duration = time::Duration::seconds(2);

/// Maintains a queue. The leader does so; several at once do no harm (`crate::leader_election`).
#[derive(Clone, Debug)]
pub struct Maintenance {
    queue: Queue,
    clock: Clock,
    /// The state of each edition's faults when they were last attributed.
    faults_seen: Arc<Mutex<BTreeMap<EditionId, FaultSigns>>>,
}

/// Matches set aside, the last fault, and matches counted.
type FaultSigns = (i64, i64, i64);

/// A failure of maintenance.
#[derive(Debug, thiserror::Error)]
#[error("maintenance of {part} failed: {cause}; retrying in {delay_ms} ms")]
pub struct MaintenanceError {
    part: String,
    #[source]
    cause: Error,
    delay_ms: u128,
}

/// The result of a maintenance round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Leases that expired, and delayed lots that became pending.
    pub expired: Expired,
    /// How many lots were checked for results of earlier editions.
    pub reuse_checked: u64,
    /// Matches added to standings.
    pub counted: i64,
    /// Editions whose next round was planned.
    pub extended: Vec<EditionId>,
    /// Bots that were suspended.
    pub suspended: Vec<StoodDown>,
    /// Editions that became complete.
    pub complete: Vec<EditionId>,
}

/// Tracks since when workers could renew their leases.
#[derive(Debug)]
struct Renewals {
    /// The duration of a lease.
    lease: Duration,
    /// Since when workers could renew without a break.
    since: Instant,
    /// The last reading of the database's clock.
    reading: Option<Reading>,
}

impl Renewals {
    /// Whether leases of a part that failed last at `failed_at` may expire: workers could renew them
    /// for the full duration of a lease.
    fn may_expire(&self, failed_at: Option<Instant>) -> bool {
        failed_at.map_or(self.since, |at| at.max(self.since)).elapsed() >= self.lease
    }

    /// Restarts the period: workers could not renew their leases until now.
    fn reset(&mut self) {
        self.since = Instant::now();
    }

    /// Compares a reading of the database's clock with the last one.
    fn observe(&mut self, now: Reading) {
        let step = self.reading.replace(now).map(|before| before.step_to(&now));
        if let Some(step) = step.filter(|step| *step > MAX_CLOCK_STEP) {
            let seconds = step.as_seconds_f64();
            tracing::warn!(seconds, "the database's clock was set forward; leases are extended");
            self.reset();
        }
    }
}

impl Maintenance {
    /// Maintenance of this queue by this clock.
    pub fn new(queue: Queue, clock: Clock) -> Self {
        Self { queue, clock, faults_seen: Arc::default() }
    }

    /// Runs rounds without end, and calls `done` with their results. Cancel safe.
    ///
    /// `connected_since` is the time since when workers could renew their leases without a break.
    /// No lease expires within the duration of a lease after that time, after the database was
    /// unreachable, and after its clock was set forward: workers could not renew then.
    pub async fn run(
        &self,
        connected_since: Instant,
        mut done: impl FnMut(Result<Round, MaintenanceError>),
    ) {
        let lease = self.queue.lease_policy().lease.unsigned_abs();
        let mut renewals = Renewals { lease, since: connected_since, reading: None };
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_PARTS));
        let mut tasks: KeyedTasks<Part, (Round, Option<Error>)> = KeyedTasks::new();
        let mut backoff = Backoff::new();
        let mut rounds = interval(ROUND_INTERVAL);
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
                        renewals.reset();
                    }
                    let delay_ms = tasks.record_failure(part).as_millis();
                    done(Err(MaintenanceError { part: part.to_string(), cause, delay_ms }));
                    continue;
                }
                _ = rounds.tick() => {}
            }
            let due = match self.due(&mut renewals).await {
                Ok(due) => due,
                Err(cause) => {
                    renewals.reset();
                    let delay = backoff.next();
                    let part = "all editions".to_owned();
                    let delay_ms = delay.as_millis();
                    done(Err(MaintenanceError { part, cause, delay_ms }));
                    tokio::time::sleep(delay).await;
                    continue;
                }
            };
            backoff = Backoff::new();
            for (part, expires) in due {
                if tasks.is_ready(part) {
                    let expire = expires && renewals.may_expire(tasks.failed_at(part));
                    tasks.spawn(part, self.clone().with_permit(part, expire, Arc::clone(&permits)));
                }
            }
        }
    }

    /// Works on a part once there is a permit for it.
    async fn with_permit(
        self,
        part: Part,
        expire: bool,
        permits: Arc<Semaphore>,
    ) -> (Round, Option<Error>) {
        let _permit = permits.acquire_owned().await;
        let mut round = Round::default();
        let failed = self.work_on(part, expire, &mut round).await;
        (round, failed)
    }

    /// Works on all parts once.
    ///
    /// # Errors
    /// The first failure. All parts are tried all the same.
    pub async fn round(&self) -> Result<Round> {
        let mut round = Round::default();
        let mut failed = None;
        for (part, expires) in parts_of(&editions::upkept(self.queue.pool()).await?) {
            let error = self.work_on(part, expires, &mut round).await;
            failed = failed.or(error);
        }
        failed.map_or(Ok(round), Err)
    }

    /// The parts with work, and whether they have leases that may expire.
    async fn due(&self, renewals: &mut Renewals) -> Result<Vec<(Part, bool)>> {
        let mut connection = self.queue.pool().acquire().await?;
        renewals.observe(database_clock::read(&mut *connection).await?);
        let editions = editions::upkept(&mut *connection).await?;
        let running = |upkept: &&Upkept| upkept.state == EditionState::Running;
        let running: BTreeSet<_> = editions.iter().filter(running).map(|found| found.id).collect();
        self.faults_seen().retain(|edition, _| running.contains(edition));
        Ok(parts_of(&editions))
    }

    /// Works on a part. Each step is tried, even if the one before failed. Returns the first failure.
    async fn work_on(&self, part: Part, expire: bool, round: &mut Round) -> Option<Error> {
        let mut failed = None;
        if expire {
            match self.queue.expire_part(part).await {
                Ok(expired) => round.expired.add(expired),
                Err(error) => failed = Some(error),
            }
        }
        if let Part::Edition(edition) = part {
            let error = self.maintain_edition(edition, round).await.err();
            failed = failed.or(error);
        }
        failed
    }

    /// Does the work of an edition in its state.
    async fn maintain_edition(&self, edition: EditionId, round: &mut Round) -> Result<()> {
        let Some(found) = editions::get(self.queue.pool(), edition).await? else { return Ok(()) };
        match found.state {
            EditionState::Running => self.maintain_running(&found, self.clock.now(), round).await?,
            EditionState::Cancelled => self.count_replaced(edition).await?,
            EditionState::Planning | EditionState::Complete => {}
        }
        lots::merge_counts(self.queue.pool(), edition).await
    }

    /// Cancels the open lots of an edition that was replaced, and counts its reported ones. Its
    /// standings are no longer used, but counting selects matches for audits: a reused result is
    /// audited where it was played.
    async fn count_replaced(&self, edition: EditionId) -> Result<()> {
        lots::cancel_left(self.queue.pool(), edition).await?;
        while self.queue.count_some(edition, Which::Own).await?.is_full() {}
        Ok(())
    }

    fn faults_seen(&self) -> MutexGuard<'_, BTreeMap<EditionId, FaultSigns>> {
        self.faults_seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends bots that cause faults, if matches are set aside and something changed since the
    /// last time.
    async fn suspend_faulty_bots(
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

    /// Checks lots of an edition for reuse, counts its reports, suspends bots, plans the next round,
    /// and completes the edition if all is counted.
    async fn maintain_running(
        &self,
        state: &Edition,
        now: OffsetDateTime,
        round: &mut Round,
    ) -> Result<()> {
        let edition = state.id;
        round.reuse_checked += self.queue.check_reuse(edition, state.checks_reuse).await?;
        let before = round.counted;
        // Reports that arrive meanwhile are left for the next round: a few lots change nearly as many
        // standings as all lots of a round.
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
            round.suspended.extend(stood_down);
        }
        let newly_counted = round.counted - before;
        round.suspended.extend(self.suspend_faulty_bots(edition, newly_counted, now).await?);
        if episodes::plan_next_round(&self.queue, edition).await.map_err(into_database_error)? {
            round.extended.push(edition);
        }
        if self.queue.complete(edition, now).await? {
            end_trace(&self.queue, edition, state.created_at).await;
            round.complete.push(edition);
        }
        Ok(())
    }
}

/// The parts of the work, and whether they have leases that may expire.
fn parts_of(editions: &[Upkept]) -> Vec<(Part, bool)> {
    let editions = editions.iter().map(|upkept| (Part::Edition(upkept.id), upkept.expires));
    [(Part::Trials, true), (Part::ShadowMatches, true)].into_iter().chain(editions).collect()
}

/// Ends the trace of an edition whose leaderboard has become official. The span covers the whole
/// edition.
async fn end_trace(queue: &Queue, edition: EditionId, created_at: OffsetDateTime) {
    if !trace::is_enabled() {
        return;
    }
    // A failure to read the trace is ignored: it only leaves the span without a parent.
    let parent = trace_contexts::take_edition(queue.pool(), edition).await.ok().flatten();
    let mut span = Span::since("edition complete", parent.as_ref(), created_at.into());
    span.set("edition", i64::from(edition.0));
    tracing::debug!(%edition, trace_id = span.trace_id(), "edition trace ended");
}

fn into_database_error(error: NextRoundError) -> Error {
    match error {
        NextRoundError::Database(_, cause) => cause,
        NextRoundError::Nonsense { .. } => Error::Decode(Box::new(error)),
    }
}
