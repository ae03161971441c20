//! The queue: lots of matches are leased to workers, and each result is counted once.
//!
//! # Why each match counts exactly once
//!
//! - A lease is a lot and its attempt number. Leasing increments that number in the lot's row, so
//!   leases are unique and an old lease differs from the current one. The row also names the
//!   holder: renewals, reports, faults and returns of other workers have no effect.
//! - Results are written only by the transaction that moves their lot from leased to reported,
//!   under the current lease. The row lock admits one such transaction, and no lot ever returns
//!   from reported to an earlier state. So the first accepted report wins. A duplicate finds the
//!   lot reported under the same attempt; a late report finds another attempt or state.
//! - Standings change only in the transaction that moves lots from reported to counted, and in the
//!   one that opens an edition: it begins with the standings of the edition before, without the
//!   matches that leave. Both take the lock of the tournament's members ([`absences::lock`]), so no
//!   match is counted between the two.
//! - After any crash each lot is in a state from which it continues: leased lots expire, delayed
//!   lots become pending, reported lots are counted.
//!
//! A report is acknowledged after the commit. If the acknowledgement is lost, the worker sends the
//! report again, which is harmless.
//!
//! # What makes it fast
//!
//! Rows that change are few and small. Results are inserted by `COPY`, and many reports share one
//! commit ([`ReportSender`]). [`crate::maintenance`] updates standings four times a second, in
//! separate transactions, so reports about the same bots do not wait for each other. Leasing and
//! reporting never share a transaction: two transactions that hold reported rows while they claim
//! more could wait for each other.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arbiter_games::Games;
use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{EditionId, Lease, LotNumber, MatchNumber, TournamentId, WorkerId};
use arbiter_ranking::Tallies;
use sqlx::{Error, PgConnection, PgPool, Result};
use time::{Duration, OffsetDateTime};

mod active_leases;
mod audit_policy;
mod audit_selection;
mod dispatch;
mod extension;
mod record_upload;
mod report;
mod report_batcher;
mod stored_match;
mod trials;
mod verify_standings;

pub use active_leases::ActiveLeases;
pub(crate) use active_leases::WorkerStream;
pub use audit_policy::{Audit, Share, ShareError};
pub use audit_selection::{Selection, is_in_share};
pub use dispatch::{Allocator, Dispatcher, Task, Work};
pub use extension::{Extension, PlanError, extend};
pub(crate) use record_upload::UNUSED_AFTER;
pub use record_upload::{UploadError, UploadedRecords};
pub use report::{MAX_FILES_LEN, Report};
pub use report_batcher::{ReportBatcher, ReportError, ReportSender};
pub use verify_standings::StandingDifference;

pub use crate::db::lots::{
    FailedLease, Failure, InitialLot, LeasedLot, NewLot, Order, ReportStatus, RetryPolicy,
};

use crate::db::leases::Kind;
use crate::db::lots::CountedLot;
use crate::db::results::SeatedResult;
use crate::db::{self, absences, editions, leases, lots, results, standings, tournaments};
use crate::metrics::{LeaseOperation, Metrics};

/// Maximum number of tries after transient database errors.
const MAX_TRIES: u32 = 5;
/// The delay before the first retry. It doubles with each further retry.
const RETRY_DELAY: std::time::Duration = std::time::Duration::from_millis(10);

/// The rules of leasing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasePolicy {
    /// The duration of a lease without renewal.
    pub lease: Duration,
    /// How failed lots are retried.
    pub retry_policy: RetryPolicy,
}

impl LeasePolicy {
    /// Leases last a minute. After three faults a match is set aside.
    pub const DEFAULT: Self = Self {
        lease: Duration::MINUTE,
        retry_policy: RetryPolicy {
            faults: 3,
            delay: Duration::SECOND,
            max_delay: Duration::MINUTE,
        },
    };
}

/// A part of the maintenance work: a tournament, all trials, or all shadow matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The queue of a tournament, and its running edition.
    Tournament(TournamentId),
    /// The trials.
    Trials,
    /// The shadow matches.
    ShadowMatches,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tournament(tournament) => write!(f, "tournament {tournament}"),
            Self::Trials => f.write_str("the trials"),
            Self::ShadowMatches => f.write_str("the shadow matches"),
        }
    }
}

/// The result of a round of expiry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Lots whose leases expired, and their new states.
    pub failed: Vec<FailedLease>,
    /// How many delayed lots became pending.
    pub resumed: u64,
}

impl Expired {
    pub(crate) fn add(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.resumed += other.resumed;
    }
}

/// The failures of expired leases.
fn expiry_failures(leases: Vec<Lease>) -> Vec<Failure> {
    let failure = |lease| Failure {
        lease,
        by: None,
        kind: FaultKind::Expired,
        reason: "the lease expired without a renewal".to_owned(),
    };
    leases.into_iter().map(failure).collect()
}

/// The lots and matches that one transaction added to standings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountedBatch {
    lots: usize,
    pub(crate) matches: i64,
}

impl CountedBatch {
    /// Whether there may be more lots to count.
    pub(crate) fn is_full(self) -> bool {
        self.lots == lots::MAX_COUNTED
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
    /// The queue of this database, with these games and this lease policy.
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

    /// The metrics of this coordinator.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Leases up to `max` lots of a tournament, those with the longest expected time first.
    ///
    /// It may lease fewer lots although more are pending, because the number is rounded down to a
    /// power of two. The leases have no holder, so any worker may report them.
    pub async fn lease(&self, tournament: TournamentId, max: usize) -> Result<Vec<LeasedLot>> {
        self.lease_to(tournament, &vec![None; max]).await
    }

    /// Leases at most one lot to each of these holders, with the longest expected time first.
    pub async fn lease_to(
        &self,
        tournament: TournamentId,
        holders: &[Option<WorkerId>],
    ) -> Result<Vec<LeasedLot>> {
        retry(|| lots::claim(&self.pool, tournament, holders, self.lease_policy.lease)).await
    }

    /// Renews the leases that are still valid, and returns them. A worker can renew only its own
    /// leases. This waits for no lock: a lease whose row is locked is returned without a renewal.
    pub async fn renew(&self, by: Option<WorkerId>, leases: &[Lease]) -> Result<Vec<Lease>> {
        let mut valid = Vec::new();
        for (kind, of_kind) in leases::by_kind(leases, |lease| *lease) {
            let renew = || leases::renew(&self.pool, kind, by, &of_kind, self.lease_policy.lease);
            valid.extend(retry(renew).await?);
        }
        self.refuse_others(LeaseOperation::Renewal, by, leases, valid.len()).await?;
        Ok(valid)
    }

    /// Returns unplayed leases to the queue, without a fault. Returns the leases that were still
    /// valid. A worker can return only its own leases.
    pub async fn return_leases(
        &self,
        by: Option<WorkerId>,
        leases: &[Lease],
    ) -> Result<Vec<Lease>> {
        let mut valid = Vec::new();
        for (kind, of_kind) in leases::by_kind(leases, |lease| *lease) {
            valid.extend(retry(|| self.return_some(kind, by, &of_kind)).await?);
        }
        self.metrics.returned.inc_by(valid.len() as u64);
        self.refuse_others(LeaseOperation::Return, by, leases, valid.len()).await?;
        Ok(valid)
    }

    async fn return_some(
        &self,
        kind: Kind,
        by: Option<WorkerId>,
        leases: &[Lease],
    ) -> Result<Vec<Lease>> {
        let mut transaction = self.pool.begin().await?;
        let returned = leases::return_leases(&mut *transaction, kind, by, leases).await?;
        if kind == Kind::Lots {
            // A new edition may need only some matches of a lot that was leased when it opened.
            let mut lots: BTreeMap<TournamentId, Vec<LotNumber>> = BTreeMap::new();
            for lot in returned.iter().map(|lease| lease.lot) {
                lots.entry(lot.tournament).or_default().push(lot.number);
            }
            for (tournament, lots) in lots {
                lots::drop_absent(&mut transaction, tournament, &lots).await?;
            }
        }
        transaction.commit().await?;
        Ok(returned)
    }

    /// Logs and counts the operation for each of these leases that belongs to another worker,
    /// unless all were granted.
    async fn refuse_others(
        &self,
        operation: LeaseOperation,
        by: Option<WorkerId>,
        leases: &[Lease],
        granted: usize,
    ) -> Result<()> {
        let Some(worker) = by.filter(|_| granted < leases.len()) else { return Ok(()) };
        for lease in leases::held_by_others(&self.pool, worker, leases).await? {
            self.refuse(operation, worker, lease);
        }
        Ok(())
    }

    /// Logs and counts an operation on another worker's lease.
    pub(crate) fn refuse(&self, operation: LeaseOperation, worker: WorkerId, lease: Lease) {
        let operation_name = operation.as_str();
        tracing::warn!(
            %worker, %lease, operation = operation_name,
            "rejected: the lease belongs to another worker"
        );
        self.metrics.record_refused(operation);
    }

    /// Records faults, and returns the new states of the lots whose leases were still valid.
    pub async fn fail(&self, failures: &[Failure]) -> Result<Vec<FailedLease>> {
        let failing = retry(|| async {
            let mut transaction = self.pool.begin().await?;
            let retry_policy = &self.lease_policy.retry_policy;
            let failed = leases::fail(&mut transaction, failures, retry_policy).await?;
            transaction.commit().await?;
            Ok(failed)
        });
        let failed = failing.await?;
        for failure in failures {
            let is_granted = failed.iter().any(|failed| failed.lease == failure.lease);
            let granted = usize::from(is_granted);
            self.refuse_others(LeaseOperation::Fault, failure.by, &[failure.lease], granted)
                .await?;
        }
        Ok(failed)
    }

    /// Expires the overdue leases of a part, which counts as a fault. Makes delayed lots pending if
    /// their delay has passed.
    pub async fn expire_part(&self, part: Part) -> Result<Expired> {
        let expiring = retry(|| async {
            let mut transaction = self.pool.begin().await?;
            let overdue = match part {
                Part::Tournament(id) => lots::expire(&mut *transaction, id).await?,
                Part::Trials => db::trials::expire(&mut *transaction).await?,
                Part::ShadowMatches => db::shadows::expire(&mut *transaction).await?,
            };
            if overdue.is_empty() {
                return Ok(Vec::new());
            }
            let failures = expiry_failures(overdue);
            let retry_policy = &self.lease_policy.retry_policy;
            let failed = leases::fail(&mut transaction, &failures, retry_policy).await?;
            transaction.commit().await?;
            Ok(failed)
        });
        let failed = expiring.await?;
        self.metrics.expired.inc_by(failed.len() as u64);
        let resumed = match part {
            Part::Tournament(id) => retry(|| lots::resume_delayed(&self.pool, id)).await?,
            Part::Trials | Part::ShadowMatches => 0,
        };
        Ok(Expired { failed, resumed })
    }

    /// Cancels an edition. Its lots are no longer leased, and reports for them are rejected.
    /// Returns whether the edition was open.
    pub async fn cancel(&self, edition: EditionId, now: OffsetDateTime) -> Result<bool> {
        retry(|| async {
            let mut transaction = self.pool.begin().await?;
            let is_open = editions::cancel(&mut *transaction, edition, now).await?;
            if is_open {
                let scope = editions::scope(&mut *transaction, edition).await?;
                lots::cancel(&mut transaction, scope.tournament).await?;
            }
            transaction.commit().await?;
            Ok(is_open)
        })
        .await
    }

    /// Adds reported matches of a tournament to the standings of its running edition, and returns
    /// their number. It is 0 if all are counted, or another transaction has locked some of them.
    pub async fn count(&self, tournament: TournamentId) -> Result<i64> {
        Ok(self.count_some(tournament).await?.matches)
    }

    /// Adds reported matches of a tournament to the standings of its running edition. Returns the
    /// numbers of lots and matches.
    pub(crate) async fn count_some(&self, tournament: TournamentId) -> Result<CountedBatch> {
        let counting = retry(|| async {
            let mut transaction = self.pool.begin().await?;
            let counted = count(&mut transaction, &self.games, tournament).await?;
            transaction.commit().await?;
            Ok(counted)
        });
        match counting.await {
            Err(error) if db::is_locked(&error) => Ok(CountedBatch { lots: 0, matches: 0 }),
            result => result,
        }
    }

    /// Completes an edition if all its matches are counted. Returns whether this call did so.
    pub async fn complete(&self, edition: EditionId, now: OffsetDateTime) -> Result<bool> {
        editions::complete(&self.pool, edition, now).await
    }
}

/// Counts at most [`lots::MAX_COUNTED`] lots, in the caller's transaction. Matches that no edition
/// needs any more are not added to standings.
async fn count(
    db: &mut PgConnection,
    games: &Games,
    tournament: TournamentId,
) -> Result<CountedBatch> {
    let nothing = CountedBatch { lots: 0, matches: 0 };
    // While another transaction opens an edition, this one counts nothing.
    if !absences::try_lock_shared(&mut *db, tournament).await? {
        return Ok(nothing);
    }
    let mut counted = lots::count(&mut *db, tournament).await?;
    let lots = counted.len();
    let Some(row) = tournaments::get(&mut *db, tournament).await?.filter(|_| lots > 0) else {
        return Ok(CountedBatch { lots, ..nothing });
    };
    let running = editions::running(&mut *db, tournament).await?;
    let game = row.game(games).map_err(|error| Error::Decode(Box::new(error)))?;
    counted.sort_unstable_by_key(|lot| lot.first_match);
    let (firsts, pasts) = merge_ranges(&counted);
    let absent = absences::in_ranges(&mut *db, tournament, &firsts, &pasts).await?;
    let mut tallies = Tallies::new(&game);
    let mut selection = audit_selection::begin(&mut *db, tournament).await?;
    let add = |played: &SeatedResult| {
        if !absent.contains(&played.number) {
            tallies.add(&played.outcome());
        }
        if let Some(selection) = &mut selection {
            selection.add(played);
        }
    };
    results::each_of_ranges(&mut *db, tournament, &firsts, &pasts, add).await?;
    if let Some(selection) = selection {
        let reported_by = |number: MatchNumber| {
            let next = counted.partition_point(|lot| lot.first_match <= number.0);
            let lot = counted[..next].last()?;
            lot.worker.zip(lot.reported_at)
        };
        audit_selection::store(&mut *db, tournament, selection, reported_by).await?;
    }
    let Some(edition) = running else { return Ok(CountedBatch { lots, ..nothing }) };
    standings::add(&mut *db, edition.id, tallies.by_entrant()).await?;
    let matches = tallies.matches();
    editions::count(&mut *db, edition.id, matches, matches).await?;
    Ok(CountedBatch { lots, matches })
}

/// Merges adjacent ranges of matches of ordered lots. Returns the first matches and the exclusive
/// ends.
fn merge_ranges(lots: &[CountedLot]) -> (Vec<i64>, Vec<i64>) {
    let mut firsts: Vec<i64> = Vec::new();
    let mut pasts: Vec<i64> = Vec::new();
    for lot in lots {
        match pasts.last_mut() {
            Some(last) if *last == lot.first_match => *last = lot.past,
            _ => {
                firsts.push(lot.first_match);
                pasts.push(lot.past);
            }
        }
    }
    (firsts, pasts)
}

/// Retries work that fails with a transient database error.
pub(crate) async fn retry<T, F>(work: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut delay = RETRY_DELAY;
    for _ in 1..MAX_TRIES {
        match work().await {
            Err(error) if db::is_transient(&error) => tokio::time::sleep(delay).await,
            result => return result,
        }
        delay *= 2;
    }
    work().await
}

#[cfg(test)]
mod tests {
    use super::{CountedLot, merge_ranges};

    #[test]
    fn adjacent_ranges_are_merged() {
        let lot =
            |(first_match, past)| CountedLot { first_match, past, worker: None, reported_at: None };
        let lots = [(0, 4), (4, 8), (8, 9), (20, 21)].map(lot);
        assert_eq!(merge_ranges(&lots), (vec![0, 20], vec![9, 21]));
        assert_eq!(merge_ranges(&[]), (Vec::new(), Vec::new()));
    }
}
