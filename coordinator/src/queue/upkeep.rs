//! What has to happen again and again: leases expire, lots are weighed, results are counted, rounds
//! of episodes are planned, editions become complete.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Error;
use time::OffsetDateTime;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Expired, Queue};
use crate::db::bots::StoodDown;
use crate::db::lots::Which;
use crate::db::{editions, faults, traces};
use crate::standing_down;
use crate::tournament::{GrowError, episodes};
use arbiter_proto::ids::EditionId;
use arbiter_proto::trace::{self, Span};

/// How often results are brought into the standings.
const ROUND: Duration = Duration::from_millis(250);

/// Tells the time.
pub type Clock = fn() -> OffsetDateTime;

/// Keeps a queue going. The leader does so; several at once do no harm (`crate::leader`).
#[derive(Debug)]
pub struct Upkeep {
    queue: Queue,
    clock: Clock,
    /// What was known of the faults of editions when they were looked at last.
    faults_seen: Mutex<BTreeMap<EditionId, FaultSigns>>,
}

/// Matches set aside, the last fault, and matches counted.
type FaultSigns = (i64, i64, i64);

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

impl Upkeep {
    /// Upkeep of this queue by this clock.
    pub fn new(queue: Queue, clock: Clock) -> Self {
        Self { queue, clock, faults_seen: Mutex::default() }
    }

    /// Works round after round and hands over what each did. It may be dropped at any moment.
    pub async fn run(&self, done: impl FnMut(Result<Round, Error>)) {
        self.run_since(Instant::now(), done).await;
    }

    /// The same, where workers could renew their leases without a break since `away`.
    ///
    /// Nothing expires in a lease's time after that, nor in that after a round that failed: while
    /// we or the database were away nobody could renew, and that was not the workers' fault.
    pub async fn run_since(&self, mut away: Instant, mut done: impl FnMut(Result<Round, Error>)) {
        let lease = self.queue.terms.lease.unsigned_abs();
        let mut rounds = interval(ROUND);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            rounds.tick().await;
            let (round, failed) = self.work(away.elapsed() >= lease).await;
            done(Ok(round));
            if let Some(error) = failed {
                away = Instant::now();
                done(Err(error));
            }
        }
    }

    /// Works once.
    ///
    /// # Errors
    /// If the database fails; the next round does what this one did not.
    pub async fn round(&self) -> Result<Round, Error> {
        match self.work(true).await {
            (round, None) => Ok(round),
            (_, Some(error)) => Err(error),
        }
    }

    /// Works once, as far as it goes: an edition that fails holds up no other. What was done, and
    /// the first failure.
    async fn work(&self, expire: bool) -> (Round, Option<Error>) {
        let now = (self.clock)();
        let mut round = Round::default();
        let mut failed = None;
        if expire {
            match self.queue.expire(now).await {
                Ok(expired) => round.expired = expired,
                Err(error) => return (round, Some(error)),
            }
        }
        if let Err(error) = self.count_replaced().await {
            failed.get_or_insert(error);
        }
        let running = match editions::running(self.queue.pool()).await {
            Ok(running) => running,
            Err(error) => return (round, Some(error)),
        };
        self.faults_seen().retain(|edition, _| running.contains(edition));
        for edition in running {
            if let Err(error) = self.tend(edition, now, &mut round).await {
                failed.get_or_insert(error);
            }
        }
        (round, failed)
    }

    /// Counts what was reported of editions that were replaced, although their standings are of no
    /// use any more: a result that a later edition takes over is chosen for an audit where it was
    /// played, when it is counted there.
    async fn count_replaced(&self) -> Result<(), Error> {
        for edition in editions::replaced_uncounted(self.queue.pool()).await? {
            while self.queue.count_some(edition, Which::Own).await?.is_full() {}
        }
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
    ) -> Result<Vec<StoodDown>, Error> {
        let (aside, last_fault) = faults::signs(self.queue.pool(), edition).await?;
        if aside == 0 {
            return Ok(Vec::new());
        }
        let before = self.faults_seen().get(&edition).copied();
        let played = before.map_or(0, |(.., played)| played) + counted;
        if before == Some((aside, last_fault, played)) {
            return Ok(Vec::new());
        }
        let stood_down = standing_down::stand_down_faulty(self.queue.pool(), edition, now).await?;
        self.faults_seen().insert(edition, (aside, last_fault, played));
        Ok(stood_down)
    }

    /// Weighs lots of an edition, counts what was reported of it, plans what follows from that, and
    /// looks whether it is complete.
    async fn tend(
        &self,
        edition: EditionId,
        now: OffsetDateTime,
        round: &mut Round,
    ) -> Result<(), Error> {
        let Some(state) = editions::get(self.queue.pool(), edition).await? else { return Ok(()) };
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
            let stood_down = standing_down::stand_down(self.queue.pool(), edition, now).await?;
            round.stood_down.extend(stood_down);
        }
        round.stood_down.extend(self.blame(edition, round.counted - before, now).await?);
        if episodes::grow(&self.queue, edition).await.map_err(passed_on)? {
            round.grown.push(edition);
        }
        if self.queue.complete(edition, now).await? {
            end_trace(&self.queue, edition, state.created_at).await;
            round.complete.push(edition);
        }
        Ok(())
    }
}

/// Ends the trace of an edition whose leaderboard is official from now on. It took as long as the
/// edition.
async fn end_trace(queue: &Queue, edition: EditionId, created_at: OffsetDateTime) {
    if !trace::is_on() {
        return;
    }
    // A trace that lacks its end is no reason to stop.
    let parent = traces::take_edition(queue.pool(), edition).await.ok().flatten();
    let mut span = Span::since("edition complete", parent.as_ref(), created_at.into());
    span.set("edition", i64::from(edition.0));
    tracing::debug!(%edition, trace_id = span.trace_id(), "its trace ends");
}

/// What kept a round from being planned, as upkeep tells it.
fn passed_on(error: GrowError) -> Error {
    match error {
        GrowError::Database { cause, .. } => cause,
        GrowError::Nonsense { .. } => Error::Decode(Box::new(error)),
    }
}
