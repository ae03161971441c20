//! Periodic work on the queue: expire leases, check whether matches are stored already, count
//! results, plan rounds of episodes, complete editions.
//!
//! # Why a failure delays nothing else
//!
//! The work is split into *parts*: each tournament, the trials, and the shadow matches. Each part
//! runs in a separate task, at most one at a time. After a failure the part waits before the retry,
//! longer with each failure. The other parts continue. Within a tournament, leases expire even if
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
use crate::db::bots::SuspendedBot;
use crate::db::editions::{DueTournament, Edition};
use crate::db::lots;
use crate::db::{self, editions, faults, trace_contexts};
use crate::keyed_tasks::KeyedTasks;
use crate::queue::{Expired, Part, Queue};
use crate::tournament::rounds;
use arbiter_proto::ids::{EditionId, TournamentId};
use arbiter_proto::trace::{self, Span};

/// The time between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of parts that are worked on at the same time.
const MAX_CONCURRENT_PARTS: usize = 4;
/// If the database's clock was set forward by more than this, no lease expires for the duration of
/// a lease, so that workers can renew their leases.
const MAX_CLOCK_STEP: time::Duration = time::Duration::seconds(2);

/// Maintains a queue. The leader does so. Two leaders at once do no harm
/// (`crate::leader_election`).
#[derive(Clone, Debug)]
pub struct Maintenance {
    queue: Queue,
    clock: Clock,
    /// The faults of each edition when they were last attributed to bots.
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
    /// Number of lots that were checked whether their matches are stored already.
    pub checked: u64,
    /// Number of matches added to standings.
    pub counted: i64,
    /// Editions whose next round was planned.
    pub extended: Vec<EditionId>,
    /// Bots that were suspended.
    pub suspended: Vec<SuspendedBot>,
    /// Editions that were completed.
    pub complete: Vec<EditionId>,
}

/// Tracks for how long workers could renew their leases.
#[derive(Debug)]
struct Renewals {
    /// The duration of a lease.
    lease: Duration,
    /// The start of the current period in which workers could renew.
    since: Instant,
    /// The last reading of the database's clock.
    reading: Option<Reading>,
}

impl Renewals {
    /// Whether leases of a part may expire. The last failure of the part was at `failed_at`. Since
    /// then workers must have been able to renew leases for the full duration of a lease.
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
    /// Maintenance of this queue with this clock.
    pub fn new(queue: Queue, clock: Clock) -> Self {
        Self { queue, clock, faults_seen: Arc::default() }
    }

    /// Runs rounds without end, and calls `on_result` with their results. Cancel safe.
    ///
    /// Since `connected_since` workers could renew their leases without a break. After that time no
    /// lease expires for the duration of a lease. The same is true after the database was
    /// unreachable, and after its clock was set forward, because workers could not renew then.
    pub async fn run(
        &self,
        connected_since: Instant,
        mut on_result: impl FnMut(Result<Round, MaintenanceError>),
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
                Some((part, result)) = tasks.join_next() => {
                    let error = match result {
                        Ok((round, error)) => {
                            on_result(Ok(round));
                            error
                        }
                        Err(panicked) => Some(Error::Decode(Box::new(panicked))),
                    };
                    let Some(cause) = error else {
                        tasks.backoffs.record_success(part, lease);
                        continue;
                    };
                    if db::is_unavailable(&cause) {
                        renewals.reset();
                    }
                    let delay_ms = tasks.backoffs.record_failure(part).as_millis();
                    on_result(Err(MaintenanceError { part: part.to_string(), cause, delay_ms }));
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
                    on_result(Err(MaintenanceError { part, cause, delay_ms }));
                    tokio::time::sleep(delay).await;
                    continue;
                }
            };
            backoff = Backoff::new();
            for (part, expires) in due {
                if tasks.is_ready(part) {
                    let expire = expires && renewals.may_expire(tasks.backoffs.failed_at(part));
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
        let error = self.work_on(part, expire, &mut round).await;
        (round, error)
    }

    /// Works on all parts once.
    ///
    /// # Errors
    /// The first failure. The other parts still run.
    pub async fn round(&self) -> Result<Round> {
        let mut round = Round::default();
        let mut first_error = None;
        for (part, expires) in parts_of(&editions::needing_maintenance(self.queue.pool()).await?) {
            let error = self.work_on(part, expires, &mut round).await;
            first_error = first_error.or(error);
        }
        first_error.map_or(Ok(round), Err)
    }

    /// The parts with work, and whether they have leases that may expire.
    async fn due(&self, renewals: &mut Renewals) -> Result<Vec<(Part, bool)>> {
        let mut connection = self.queue.pool().acquire().await?;
        renewals.observe(database_clock::read(&mut *connection).await?);
        let due = editions::needing_maintenance(&mut *connection).await?;
        let running: BTreeSet<_> = due.iter().filter_map(|due| due.running).collect();
        self.faults_seen().retain(|edition, _| running.contains(&edition.0));
        Ok(parts_of(&due))
    }

    /// Works on a part. Runs each step, even if an earlier step failed. Returns the first
    /// failure.
    async fn work_on(&self, part: Part, expire: bool, round: &mut Round) -> Option<Error> {
        let mut first_error = None;
        if expire {
            match self.queue.expire_part(part).await {
                Ok(expired) => round.expired.add(expired),
                Err(error) => first_error = Some(error),
            }
        }
        if let Part::Tournament(tournament) = part {
            let error = self.maintain_tournament(tournament, round).await.err();
            first_error = first_error.or(error);
        }
        first_error
    }

    /// Maintains the running edition of a tournament, or what remains in its queue.
    async fn maintain_tournament(&self, tournament: TournamentId, round: &mut Round) -> Result<()> {
        if let Some(running) = editions::running(self.queue.pool(), tournament).await? {
            self.maintain_running(&running, self.clock.now(), round).await?;
        } else {
            // No standings change, but counting selects matches for audits.
            lots::cancel_returned(self.queue.pool(), tournament).await?;
            while self.queue.count_some(tournament).await?.is_full() {}
        }
        lots::merge_counts(self.queue.pool(), tournament).await
    }

    fn faults_seen(&self) -> MutexGuard<'_, BTreeMap<EditionId, FaultSigns>> {
        self.faults_seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Suspends bots that cause faults, if matches are set aside and something changed since the
    /// last time.
    async fn suspend_faulty_bots(
        &self,
        state: &Edition,
        counted: i64,
        now: OffsetDateTime,
    ) -> Result<Vec<SuspendedBot>> {
        let edition = state.id;
        let (aside, last_fault) = faults::latest(self.queue.pool(), state.tournament).await?;
        if aside == 0 {
            return Ok(Vec::new());
        }
        let last_signs = self.faults_seen().get(&edition).copied();
        let played = last_signs.map_or(0, |(.., played)| played) + counted;
        if last_signs == Some((aside, last_fault, played)) {
            return Ok(Vec::new());
        }
        let suspended =
            bot_suspension::suspend_for_faults(self.queue.pool(), state.scope(), now).await?;
        self.faults_seen().insert(edition, (aside, last_fault, played));
        Ok(suspended)
    }

    /// Checks whether matches are stored already, counts reports, suspends bots, plans the next
    /// round, and completes the edition if all matches are counted.
    async fn maintain_running(
        &self,
        state: &Edition,
        now: OffsetDateTime,
        round: &mut Round,
    ) -> Result<()> {
        let edition = state.id;
        round.checked += self.queue.check_stored(state.tournament).await?;
        let counted_before = round.counted;
        // Reports that arrive meanwhile are counted in the next round. A few lots change nearly as
        // many standings as all lots of a round.
        loop {
            let counted = self.queue.count_some(state.tournament).await?;
            round.counted += counted.matches;
            if !counted.is_full() {
                break;
            }
        }
        if round.counted > counted_before {
            let suspended =
                bot_suspension::suspend_for_forfeits(self.queue.pool(), edition, now).await?;
            round.suspended.extend(suspended);
        }
        let newly_counted = round.counted - counted_before;
        round.suspended.extend(self.suspend_faulty_bots(state, newly_counted, now).await?);
        // All matches of a round may be stored already, with their results.
        while rounds::plan_next_round(&self.queue, edition).await? {
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
fn parts_of(due: &[DueTournament]) -> Vec<(Part, bool)> {
    let due = due.iter().map(|due| (Part::Tournament(due.id), due.expires));
    [(Part::Trials, true), (Part::ShadowMatches, true)].into_iter().chain(due).collect()
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
