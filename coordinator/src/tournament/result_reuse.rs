//! Stores a plan, and reuses the results of equal matches in earlier editions.
//!
//! The database copies the results in bulk. Then the planned lots are split into three kinds.
//! Matches with a reused result are in lots that are already reported. Matches that are still being
//! played for the replaced edition are in lots that wait for a reuse check. Other lots may be
//! leased. Only the bounds of these runs of matches are in memory.
//!
//! # Why no match is played twice
//!
//! While results are copied, lots of the replaced edition are still leased and reported. So that
//! edition is stopped after the copy, and its progress is read again: first the leased lots, then
//! the results reported since the copy. The second read finds a lot that is reported between the
//! two reads.

use std::iter::Peekable;

use arbiter_proto::ids::{EditionId, LotNumber, MatchNumber};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::db::lots::{self, InitialLot, LotState};
use crate::db::matches::{self, Match};
use crate::db::result_reuse::{self, Run};
use crate::db::{self, editions, invalidated_matches};
use crate::queue::{NewLot, Order, Plan, PlanError};

/// Maximum number of matches of a reused lot. It is small, because many of these lots are counted
/// at a time.
const MAX_REUSED: i32 = 128;

/// The edition that a plan is added to.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanTarget {
    /// The edition.
    pub(super) edition: EditionId,
    /// Whether bots leave files for later matches. Then each lot needs a reuse check before its
    /// lease.
    pub(super) chained: bool,
    /// The number of the first match of the plan.
    pub(super) first: MatchNumber,
    /// The edition that this one replaces, and when.
    pub(super) replaces: Option<(EditionId, OffsetDateTime)>,
}

/// Adds a plan to an edition in the caller's transaction. Returns the number of matches.
pub(super) async fn add_plan<M, L, O>(
    db: &mut PgConnection,
    to: PlanTarget,
    plan: Plan<M, L, O>,
) -> Result<u64, PlanError>
where
    M: Iterator<Item = Match>,
    L: Iterator<Item = NewLot>,
    O: Iterator<Item = Order>,
{
    let PlanTarget { edition, chained, .. } = to;
    let database_error = |cause| PlanError::Database(edition, cause);
    db::lift_time_limits(&mut *db).await.map_err(database_error)?;
    let matches = matches::copy_in(db, edition, plan.matches).await.map_err(database_error)?;
    let runs = reuse_results(db, to).await.map_err(database_error)?;
    if chained {
        let checks_reuse =
            result_reuse::is_possible(&mut *db, edition).await.map_err(database_error)?;
        if checks_reuse {
            editions::set_checks_reuse(&mut *db, edition).await.map_err(database_error)?;
        }
        let enter = |lot: NewLot| match InitialLot::from(lot) {
            InitialLot { lot, state: LotState::Pending } if checks_reuse => {
                InitialLot { lot, state: LotState::CheckingReuse }
            }
            other => other,
        };
        lots::copy_in(db, edition, plan.lots.map(enter)).await.map_err(database_error)?;
    } else {
        let number = lots::next_number(&mut *db, edition).await.map_err(database_error)?;
        let lots = LotSplitter::new(plan.lots, runs, number);
        lots::copy_in(db, edition, lots).await.map_err(database_error)?;
    }
    crate::queue::finish_plan(db, edition, matches, plan.order, plan.open_ended).await
}

/// Copies the results that can be reused, stops the replaced edition, and returns the runs of
/// matches that need no lease. The lots of the replaced edition are changed later: workers would
/// wait for their locks.
async fn reuse_results(db: &mut PgConnection, to: PlanTarget) -> Result<Vec<Run>, sqlx::Error> {
    let PlanTarget { edition, chained, first, replaces } = to;
    let possible = !chained && result_reuse::is_possible(&mut *db, edition).await?;
    let mut under_way = Vec::new();
    if possible {
        // Lots that are leased after this read belong to the running edition, which is in the list.
        under_way = result_reuse::under_way(&mut *db, edition).await?;
        invalidated_matches::lock_against_invalidation(&mut *db, edition).await?;
        result_reuse::prepare(&mut *db).await?;
        result_reuse::results(&mut *db, edition, first, None).await?;
    }
    if let Some((before, now)) = replaces
        && editions::cancel(&mut *db, before, now).await?
    {
        result_reuse::finish(&mut *db).await?;
    }
    if !possible {
        return Ok(Vec::new());
    }
    if !under_way.is_empty() {
        result_reuse::prepare(&mut *db).await?;
        result_reuse::wait(&mut *db, edition, first, &under_way).await?;
        result_reuse::results(&mut *db, edition, first, Some(&under_way)).await?;
    }
    result_reuse::finish(&mut *db).await?;
    result_reuse::runs(&mut *db, edition, first).await
}

/// Splits planned lots where runs of matches that need no lease begin and end, and joins the reused
/// pieces again.
#[derive(Debug)]
struct LotSplitter<L: Iterator<Item = NewLot>> {
    lots: L,
    runs: Peekable<std::vec::IntoIter<Run>>,
    /// The remaining matches of the lot that is being split.
    remainder: Option<NewLot>,
    /// The number of the next lot.
    number: LotNumber,
    /// The next lot. If it is reused, the next piece may be joined to it.
    pending: Option<InitialLot>,
}

impl<L: Iterator<Item = NewLot>> LotSplitter<L> {
    /// Splits lots whose matches are in order. The first lot gets this number.
    fn new(lots: L, runs: Vec<Run>, number: LotNumber) -> Self {
        Self { lots, runs: runs.into_iter().peekable(), remainder: None, number, pending: None }
    }

    /// The next piece, with the number of the planned lot.
    fn piece(&mut self) -> Option<InitialLot> {
        let lot = self.remainder.take().or_else(|| self.lots.next())?;
        let first = lot.first_match.0;
        let lot_end = lot.first_match.0 + i64::from(lot.count);
        while self.runs.next_if(|run| run.past <= first).is_some() {}
        let (end, state) = match self.runs.peek() {
            Some(run) if run.first_match <= first => {
                (run.past, if run.reused { LotState::Reported } else { LotState::CheckingReuse })
            }
            Some(run) => (run.first_match, InitialLot::from(lot).state),
            None => (lot_end, InitialLot::from(lot).state),
        };
        let max = if state == LotState::Reported { MAX_REUSED } else { lot.count };
        let count = i32::try_from(end - first).unwrap_or(i32::MAX).min(lot.count).min(max);
        let share = i64::from(lot.expected_ms) * i64::from(count) / i64::from(lot.count);
        let expected_ms = i32::try_from(share).expect("it is a part of an i32");
        if count < lot.count {
            self.remainder = Some(NewLot {
                first_match: MatchNumber(first + i64::from(count)),
                count: lot.count - count,
                expected_ms: lot.expected_ms - expected_ms,
                ..lot
            });
        }
        Some(InitialLot { lot: NewLot { count, expected_ms, ..lot }, state })
    }
}

/// Whether two consecutive pieces are reused and may be one lot.
fn can_join(first: &InitialLot, second: &InitialLot) -> bool {
    let are_reused = [first, second].iter().all(|lot| lot.state == LotState::Reported);
    are_reused
        && first.lot.score_len == second.lot.score_len
        && first.lot.count + second.lot.count <= MAX_REUSED
}

impl<L: Iterator<Item = NewLot>> Iterator for LotSplitter<L> {
    type Item = InitialLot;

    fn next(&mut self) -> Option<InitialLot> {
        let mut current = self.pending.take().or_else(|| self.piece())?;
        while let Some(piece) = self.piece() {
            if !can_join(&current, &piece) {
                self.pending = Some(piece);
                break;
            }
            current.lot.count += piece.lot.count;
            current.lot.expected_ms = current.lot.expected_ms.saturating_add(piece.lot.expected_ms);
        }
        current.lot.number = self.number;
        self.number.0 += 1;
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(lots: &[i32], runs: &[(i64, i64, bool)]) -> Vec<(i64, i64, i32, i32, &'static str)> {
        let mut first = 0;
        let lots = (0..).zip(lots).map(|(number, count)| {
            let lot = NewLot {
                number: LotNumber(number),
                first_match: MatchNumber(first),
                count: *count,
                expected_ms: 10 * count,
                score_len: 2,
                blockers: 0,
                has_dependents: false,
            };
            first += i64::from(*count);
            lot
        });
        let run = |(first, past, reused): &(i64, i64, bool)| Run {
            first_match: *first,
            past: *past,
            reused: *reused,
        };
        let split = LotSplitter::new(lots, runs.iter().map(run).collect(), LotNumber(7));
        let summary = |InitialLot { lot, state }| {
            (lot.number.0, lot.first_match.0, lot.count, lot.expected_ms, state.as_str())
        };
        split.map(summary).collect()
    }

    #[test]
    fn lots_are_split_where_runs_begin_and_end() {
        assert_eq!(
            cut(&[5, 5, 2], &[]),
            [(7, 0, 5, 50, "pending"), (8, 5, 5, 50, "pending"), (9, 10, 2, 20, "pending")]
        );
        assert_eq!(
            cut(&[5, 5, 2], &[(1, 2, false), (2, 3, false), (4, 11, true)]),
            [
                (7, 0, 1, 10, "pending"),
                (8, 1, 1, 10, "checking_reuse"),
                (9, 2, 1, 10, "checking_reuse"),
                (10, 3, 1, 10, "pending"),
                (11, 4, 7, 70, "reported"),
                (12, 11, 1, 10, "pending"),
            ]
        );
        assert_eq!(cut(&[1, 1, 1], &[(0, 3, true)]), [(7, 0, 3, 30, "reported")]);
        let whole: Vec<_> = cut(&[300], &[(0, 300, true)]).iter().map(|lot| lot.2).collect();
        assert_eq!(whole, [128, 128, 44]);
    }
}
