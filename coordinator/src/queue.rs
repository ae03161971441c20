//! The queue: lots of matches are leased to workers, and what they report is counted once.
//!
//! # Why each match counts exactly once
//!
//! - A lease is a lot and the number of its attempt. Leasing raises that number in the lot's row,
//!   so no two leases are the same, and an old one can be told from the one that holds. The row
//!   says which worker holds it: what another one renews, reports, fails or gives back has no effect.
//! - Results are written only by a transaction that also moves their lot from leased to reported,
//!   under the lease that holds. The row's lock lets one such transaction through; nothing ever
//!   moves a lot back from reported. The first accepted report wins, its repetition finds the lot
//!   reported under the same attempt, and a late one finds another attempt or another state.
//! - Sums change only in the transaction that moves lots from reported to counted.
//! - Whatever is killed in between, each lot is in one state that somebody takes further: leased
//!   ones expire, delayed ones wake, reported ones are counted.
//!
//! A lot is acknowledged after the commit that made it reported. Where the acknowledgement is lost
//! the worker repeats its report, which is harmless.
//!
//! # What makes it fast
//!
//! Rows that change are few and small; results go in by `COPY`; many reports share one commit
//! ([`ReportSender`]); sums are brought up to date four times a second by [`crate::maintenance`], never while a
//! report is stored, so that bots who meet in many matches do not wait for each other's row.
//! Leasing and reporting never share a transaction: one that holds reported rows while it looks for
//! more can wait for another that does the same.

use std::fmt;
use std::sync::Arc;

use arbiter_games::Games;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, Lease, LotId, MatchNumber, WorkerId};
use arbiter_ranking::Tallies;
use sqlx::{Error, PgConnection, PgPool, Result};
use time::{Duration, OffsetDateTime};

mod active_leases;
mod audit_policy;
mod audit_selection;
mod dispatch;
mod record_upload;
mod report;
mod report_batcher;
mod reuse_check;
mod trials;
mod verify_standings;

pub use active_leases::ActiveLeases;
pub(crate) use active_leases::WorkerStream;
pub use audit_policy::{Audit, Share, ShareError};
pub use audit_selection::{Selection, is_in_share};
pub use dispatch::{Allocator, Dispatcher, Task, Work};
pub(crate) use record_upload::FORGOTTEN;
pub use record_upload::{UploadError, UploadedRecords};
pub use report::{MOST_FILES, Report};
pub use report_batcher::{ReportBatcher, ReportError, ReportSender};
pub use verify_standings::StandingDifference;

pub use crate::db::lots::{Failed, Failure, Leased, NewLot, Order, Patience, Verdict};

use crate::db::lots::{CountedLot, Which};
use crate::db::results::Played;
use crate::db::{self, editions, leases, lots, matches, results, standings};
use crate::metrics::{LeaseOperation, Metrics};

/// How often something is tried again that failed because the database was busy with itself.
const TRIES: u32 = 5;
/// The rest before the first of these, doubled for each further one.
const REST: std::time::Duration = std::time::Duration::from_millis(10);

/// The rules of leasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// How failed lots are tried again.
    pub retry_policy: Patience,
}

impl LeasePolicy {
    /// Leases of a minute; three faults set a match aside.
    pub const DEFAULT: Self = Self {
        lease: Duration::MINUTE,
        retry_policy: Patience {
            faults: 3,
            rest: Duration::SECOND,
            longest_rest: Duration::MINUTE,
        },
    };
}

/// What a part of a plan consists of. Lots are numbered in the order of their matches, and each
/// match is in one lot.
#[derive(Debug)]
pub struct Plan<M, L, O> {
    /// The matches.
    pub matches: M,
    /// The lots that hold them.
    pub lots: L,
    /// Which lots wait for which.
    pub order: O,
    /// Whether more may follow.
    pub growing: bool,
}

/// Why matches cannot be added to an edition, or it cannot start.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan makes no sense.
    #[error("the plan of edition {0} makes no sense: {1}")]
    Nonsense(EditionId, String),
    /// The database failed.
    #[error("cannot store the plan of edition {0}: {1}")]
    Database(EditionId, #[source] Error),
}

/// What is leased, as it is worked on in the background: each edition by itself, the trials and the
/// shadow matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// An edition.
    Edition(EditionId),
    /// The trials.
    Trials,
    /// The shadow matches.
    ShadowMatches,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edition(edition) => write!(f, "edition {edition}"),
            Self::Trials => f.write_str("the trials"),
            Self::ShadowMatches => f.write_str("the shadow matches"),
        }
    }
}

/// What a round of expiry did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Lots whose leases ran out, and what becomes of them.
    pub failed: Vec<Failed>,
    /// How many rested lots may be leased again.
    pub woken: u64,
}

impl Expired {
    pub(crate) fn add(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.woken += other.woken;
    }
}

/// The failures of leases that ran out.
fn overdue_of(leases: Vec<Lease>) -> Vec<Failure> {
    let failure = |lease| Failure {
        lease,
        by: None,
        kind: FaultKind::Expired,
        reason: "nothing was heard of it within the time of its lease".to_owned(),
    };
    leases.into_iter().map(failure).collect()
}

/// What came into standings at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    lots: usize,
    pub(crate) matches: i64,
}

impl Counted {
    /// Whether there may be more.
    pub(crate) fn is_full(self) -> bool {
        self.lots == lots::COUNTED
    }
}

/// The queue of a database.
#[derive(Clone, Debug)]
pub struct Queue {
    pool: PgPool,
    games: Games,
    lease_policy: LeasePolicy,
    metrics: Arc<Metrics>,
}

impl Queue {
    /// The queue of this database, of matches of these games, under this policy.
    pub fn new(pool: PgPool, games: Games, lease_policy: LeasePolicy) -> Self {
        Self { pool, games, lease_policy, metrics: Arc::new(Metrics::new()) }
    }

    /// The rules of leasing.
    pub fn lease_policy(&self) -> LeasePolicy {
        self.lease_policy
    }

    /// The database.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The games that are played.
    pub fn games(&self) -> &Games {
        &self.games
    }

    /// What happens here, counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Adds matches to an edition, all or none of them.
    ///
    /// # Errors
    /// If the edition takes no more matches, or they make no sense.
    pub async fn plan<M, L, O>(
        &self,
        edition: EditionId,
        plan: Plan<M, L, O>,
    ) -> Result<u64, PlanError>
    where
        M: Iterator<Item = matches::Match>,
        L: Iterator<Item = NewLot>,
        O: Iterator<Item = Order>,
    {
        let failed = |cause| PlanError::Database(edition, cause);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        let db = &mut *transaction;
        db::be_patient(&mut *db).await.map_err(failed)?;
        let matches = matches::copy_in(db, edition, plan.matches).await.map_err(failed)?;
        lots::copy_in(db, edition, plan.lots).await.map_err(failed)?;
        conclude(db, edition, matches, plan.order, plan.growing).await?;
        transaction.commit().await.map_err(failed)?;
        Ok(matches)
    }

    /// Lets a planned edition be played; whether it was being planned.
    ///
    /// # Errors
    /// If its plan makes no sense, or another edition of its tournament runs.
    pub async fn start(&self, edition: EditionId) -> Result<bool, PlanError> {
        let failed = |cause| PlanError::Database(edition, cause);
        let mut transaction = self.pool.begin().await.map_err(failed)?;
        make_ready(&mut transaction, edition).await?;
        let started = editions::start(&mut *transaction, edition).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(started)
    }

    /// Leases at most so many lots of an edition, those with the longest expected play first.
    ///
    /// There may be fewer although more are pending: a power of two is taken at most. They are
    /// leased to no worker in particular: any may report them.
    pub async fn lease(&self, edition: EditionId, most: usize) -> Result<Vec<Leased>> {
        self.lease_to(edition, &vec![None; most]).await
    }

    /// The same, at most one lot for each of these workers.
    pub async fn lease_to(
        &self,
        edition: EditionId,
        holders: &[Option<WorkerId>],
    ) -> Result<Vec<Leased>> {
        again(|| lots::claim(&self.pool, edition, holders, self.lease_policy.lease)).await
    }

    /// Renews those leases that still hold, and returns them. Leases of other workers are left out
    /// where a worker asks. Nothing here waits for a lock: what another transaction holds at this
    /// moment counts as held.
    pub async fn renew(&self, by: Option<WorkerId>, leases: &[Lease]) -> Result<Vec<Lease>> {
        let mut held = Vec::new();
        for (kind, some) in leases::by_kind(leases, |lease| *lease) {
            let renew = || leases::renew(&self.pool, kind, by, &some, self.lease_policy.lease);
            held.extend(again(renew).await?);
        }
        self.refuse_others(LeaseOperation::Renewal, by, leases, held.len()).await?;
        Ok(held)
    }

    /// Gives back leases that were not played, without blame, and returns those that still held.
    /// Where a worker does so, those of other workers are left out.
    pub async fn give_back(&self, by: Option<WorkerId>, leases: &[Lease]) -> Result<Vec<Lease>> {
        let mut held = Vec::new();
        for (kind, some) in leases::by_kind(leases, |lease| *lease) {
            held.extend(again(|| leases::give_back(&self.pool, kind, by, &some)).await?);
        }
        self.metrics.returned.inc_by(held.len() as u64);
        self.refuse_others(LeaseOperation::Return, by, leases, held.len()).await?;
        Ok(held)
    }

    /// Logs and counts what a worker wanted with leases of others, if it did not get all of them.
    async fn refuse_others(
        &self,
        what: LeaseOperation,
        by: Option<WorkerId>,
        leases: &[Lease],
        granted: usize,
    ) -> Result<()> {
        let Some(worker) = by.filter(|_| granted < leases.len()) else { return Ok(()) };
        for lease in leases::of_others(&self.pool, worker, leases).await? {
            self.refuse(what, worker, lease);
        }
        Ok(())
    }

    /// Logs and counts that a worker wanted something with a lease of another one.
    pub(crate) fn refuse(&self, what: LeaseOperation, worker: WorkerId, lease: Lease) {
        let wanted = what.as_str();
        tracing::warn!(%worker, %lease, wanted, "refused: the lease is another worker's");
        self.metrics.record_refused(what);
    }

    /// Takes note of attempts that failed through no bot's fault, and returns what becomes of
    /// those lots whose leases still held.
    pub async fn fail(&self, failures: &[Failure]) -> Result<Vec<Failed>> {
        let failed = again(|| async {
            let mut transaction = self.pool.begin().await?;
            let patience = &self.lease_policy.retry_policy;
            let failed = leases::fail(&mut transaction, failures, patience).await?;
            transaction.commit().await?;
            Ok(failed)
        });
        let failed = failed.await?;
        for failure in failures {
            let counted = failed.iter().any(|failed| failed.lease == failure.lease);
            let granted = usize::from(counted);
            self.refuse_others(LeaseOperation::Fault, failure.by, &[failure.lease], granted)
                .await?;
        }
        Ok(failed)
    }

    /// Takes leases of a part away whose deadline has passed, as if they had failed, and wakes lots
    /// that have rested.
    pub async fn expire_part(&self, part: Part) -> Result<Expired> {
        let failed = again(|| async {
            let mut transaction = self.pool.begin().await?;
            let overdue = match part {
                Part::Edition(edition) => lots::expire(&mut *transaction, edition).await?,
                Part::Trials => db::trials::expire(&mut *transaction).await?,
                Part::ShadowMatches => db::shadows::expire(&mut *transaction).await?,
            };
            if overdue.is_empty() {
                return Ok(Vec::new());
            }
            let (overdue, patience) = (overdue_of(overdue), &self.lease_policy.retry_policy);
            let failed = leases::fail(&mut transaction, &overdue, patience).await?;
            transaction.commit().await?;
            Ok(failed)
        });
        let failed = failed.await?;
        self.metrics.expired.inc_by(failed.len() as u64);
        let woken = match part {
            Part::Edition(edition) => again(|| lots::wake(&self.pool, edition)).await?,
            Part::Trials | Part::ShadowMatches => 0,
        };
        Ok(Expired { failed, woken })
    }

    /// Takes all leases away whose deadline has passed, and wakes all lots that have rested.
    pub async fn expire(&self) -> Result<Expired> {
        let mut expired = Expired::default();
        for edition in editions::upkept(&self.pool).await?.into_iter().filter(|one| one.expires) {
            expired.add(self.expire_part(Part::Edition(edition.id)).await?);
        }
        expired.add(self.expire_part(Part::Trials).await?);
        expired.add(self.expire_part(Part::ShadowMatches).await?);
        Ok(expired)
    }

    /// Gives an edition up: nothing of it is leased or accepted any more. Whether it was not over.
    pub async fn cancel(&self, edition: EditionId, now: OffsetDateTime) -> Result<bool> {
        again(|| async {
            let mut transaction = self.pool.begin().await?;
            let open = editions::cancel(&mut *transaction, edition, now).await?;
            if open {
                lots::cancel(&mut transaction, edition).await?;
            }
            transaction.commit().await?;
            Ok(open)
        })
        .await
    }

    /// Gives a lot that was set aside another chance; whether it was aside.
    pub async fn requeue(&self, lot: LotId) -> Result<bool> {
        lots::requeue(&self.pool, lot).await
    }

    /// Brings reported matches of an edition into its standings, and returns how many: 0 when all
    /// are there, or somebody else holds some of them just now.
    pub async fn count(&self, edition: EditionId) -> Result<i64> {
        Ok(self.count_some(edition, Which::All).await?.matches)
    }

    /// The same, with how many lots they were in.
    pub(crate) async fn count_some(&self, edition: EditionId, which: Which) -> Result<Counted> {
        let counted = again(|| async {
            let mut transaction = self.pool.begin().await?;
            let counted = count(&mut transaction, &self.games, edition, which).await?;
            transaction.commit().await?;
            Ok(counted)
        });
        match counted.await {
            Err(error) if db::is_held(&error) => Ok(Counted { lots: 0, matches: 0 }),
            counted => counted,
        }
    }

    /// Makes an edition complete if every match of it is counted; whether it has just happened.
    pub async fn complete(&self, edition: EditionId, now: OffsetDateTime) -> Result<bool> {
        editions::complete(&self.pool, edition, now).await
    }
}

/// Ends a plan whose matches and lots are stored, in a transaction of the caller's: adds the order
/// of its lots, and takes note of how many matches it brought.
pub(crate) async fn conclude(
    db: &mut PgConnection,
    edition: EditionId,
    matches: u64,
    order: impl Iterator<Item = Order>,
    growing: bool,
) -> Result<u64, PlanError> {
    let failed = |cause| PlanError::Database(edition, cause);
    lots::copy_order_in(db, edition, order).await.map_err(failed)?;
    let grown = editions::grow(&mut *db, edition, matches.cast_signed(), growing);
    if !grown.await.map_err(failed)? {
        let reason = "it takes no more matches".to_owned();
        return Err(PlanError::Nonsense(edition, reason));
    }
    Ok(matches)
}

/// Looks whether the plan of an edition makes sense, in a transaction of the caller's.
pub(crate) async fn make_ready(db: &mut PgConnection, edition: EditionId) -> Result<(), PlanError> {
    let failed = |cause| PlanError::Database(edition, cause);
    db::be_patient(&mut *db).await.map_err(failed)?;
    let wrong = lots::misplanned(&mut *db, edition).await.map_err(failed)?;
    let stranger = matches::seats_a_stranger(&mut *db, edition).await.map_err(failed)?;
    let stranger =
        stranger.map(|number| format!("match {number} seats somebody who is no entrant"));
    match wrong.or(stranger) {
        Some(reason) => Err(PlanError::Nonsense(edition, reason)),
        None => Ok(()),
    }
}

/// Counts some lots, in a transaction of the caller's.
async fn count(
    db: &mut PgConnection,
    games: &Games,
    edition: EditionId,
    which: Which,
) -> Result<Counted> {
    let mut counted = lots::count(&mut *db, edition, which).await?;
    let lots = counted.len();
    if lots == 0 {
        return Ok(Counted { lots, matches: 0 });
    }
    let game = editions::game(&mut *db, games, edition).await?;
    counted.sort_unstable_by_key(|lot| lot.first);
    let (firsts, pasts) = joined(&counted);
    let mut tallies = Tallies::new(&game);
    let mut selection = audit_selection::begin(&mut *db, edition).await?;
    let see = |played: &Played| {
        tallies.add(&played.outcome());
        if let Some(selection) = &mut selection {
            selection.see(played);
        }
    };
    results::each_of_ranges(&mut *db, edition, &firsts, &pasts, see).await?;
    if let Some(selection) = selection {
        let reported_by = |number: MatchNumber| {
            let behind = counted.partition_point(|lot| lot.first <= number.0);
            let lot = counted[..behind].last()?;
            lot.worker.zip(lot.reported_at)
        };
        audit_selection::store(&mut *db, edition, selection, reported_by).await?;
    }
    standings::add(&mut *db, edition, tallies.by_entrant()).await?;
    let matches = tallies.matches();
    let played = counted.iter().filter(|lot| !lot.taken).map(|lot| lot.past - lot.first).sum();
    editions::count(&mut *db, edition, matches, played).await?;
    Ok(Counted { lots, matches })
}

/// The matches of lots in order, as ranges of numbers, neighbours joined: the beginnings, and the
/// ends.
fn joined(lots: &[CountedLot]) -> (Vec<i64>, Vec<i64>) {
    let mut ends: (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for lot in lots {
        match ends.1.last_mut() {
            Some(last) if *last == lot.first => *last = lot.past,
            _ => {
                ends.0.push(lot.first);
                ends.1.push(lot.past);
            }
        }
    }
    ends
}

/// Tries again, after a rest, what failed because the database was busy with itself or away.
pub(crate) async fn again<T, F>(work: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut rest = REST;
    for _ in 1..TRIES {
        match work().await {
            Err(error) if db::is_passing(&error) => tokio::time::sleep(rest).await,
            done => return done,
        }
        rest *= 2;
    }
    work().await
}

#[cfg(test)]
mod tests {
    use super::{CountedLot, joined};

    #[test]
    fn neighbours_are_joined() {
        let lot = |(first, past)| CountedLot {
            first,
            past,
            worker: None,
            reported_at: None,
            taken: false,
        };
        let lots = [(0, 4), (4, 8), (8, 9), (20, 21)].map(lot);
        assert_eq!(joined(&lots), (vec![0, 20], vec![9, 21]));
        assert_eq!(joined(&[]), (Vec::new(), Vec::new()));
    }
}
