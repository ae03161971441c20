//! Audits of matches: workers are not trusted, so a share of their reports is verified.
//!
//! # Theory of operation
//!
//! The transaction that counts results also selects some of them for audits
//! (`queue/audit_selection.rs`): a share of all matches by the tournament's secret seed, and every
//! match with a forfeit, a bad answer or an outlying score. So each result is considered exactly
//! once.
//!
//! The leader *recounts* matches: it replays the record of a report through the rules, and compares
//! the scores, forfeits and transcript hash with the report, and the parameters, seed and bots with
//! the plan. This runs no bot, and handles one record after the other on one thread. A record that
//! contradicts its report proves that the worker is broken or dishonest, and suspends it
//! (`crate::worker_suspension`).
//!
//! A share of the matches is played again by another worker, and so are matches selected for a
//! recount that have no record (`match_audit/shadow_play.rs`).
//!
//! When an edition is complete, the results of each worker are compared with those of the others
//! (`ranking/residual.rs`): once nothing is played, or some minutes later.
//!
//! Audits change no result. The results of a suspended worker count until an organiser declares them
//! void.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{ClockRules, Games, Params, RULES_VERSION};
use arbiter_proto::assignment::MatchAssignment;
use arbiter_proto::ids::{MatchId, WorkerId};
use arbiter_proto::settings::Settings;
use arbiter_ranking::residual;
use sqlx::{Error, PgPool, Result};
use tokio::time::Instant;

use crate::database_clock::Clock;
use crate::db::match_audits::{self, AuditState, PendingRecount};
use crate::db::played_matches;
use crate::db::records::{self, Record, Slice};
use crate::db::results::MatchResult;
use crate::db::{self, editions, matches, result_reuse, suspensions, tournaments, worker_stats};
use crate::record_store::{RecordStore, StoreError};
use crate::tournament::lot_assignment::{AssignmentBuilder, AssignmentError};
use crate::worker_suspension::SuspendedWorker;

mod recount;
pub mod shadow_play;
pub mod worker_review;

use recount::Finding;

/// The pause between two rounds when there is nothing to recount.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the audits of all workers are reviewed without a new recount.
const REVIEW_INTERVAL: Duration = Duration::from_secs(5);
/// Approximate maximum number of matches in a comparison of workers, which takes seconds.
const MAX_COMPARED: i64 = 50_000;
/// How long a comparison is deferred while matches are played: it uses a whole processor.
const MAX_DEFERRAL: time::Duration = time::Duration::minutes(10);
/// Maximum number of tries to read a record.
const MAX_FAULTS: i16 = 20;

/// Why a match cannot be recounted now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] Error),
    /// The store of records failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The plan of the match cannot be read.
    #[error("{0}")]
    Assignment(#[from] AssignmentError),
    /// What was to be played makes no sense.
    #[error("what was planned makes no sense: {0}")]
    Nonsense(String),
}

/// The result of an audit round.
#[derive(Debug, Default)]
pub(crate) struct AuditRound {
    /// The number of finished recounts.
    pub(crate) recounted: usize,
    /// Differences: the match, the worker that reported it, and the difference.
    pub(crate) differences: Vec<(MatchId, WorkerId, String)>,
    /// Workers that were suspended.
    pub(crate) suspended: Vec<SuspendedWorker>,
}

/// Recounts matches and suspends workers. The leader does so; several at once do no harm.
#[derive(Debug)]
pub(crate) struct Auditor {
    pool: PgPool,
    store: Option<RecordStore>,
    assignments: Arc<AssignmentBuilder>,
    clock: Clock,
    /// The time of the last review of workers.
    reviewed_at: Option<Instant>,
}

impl Auditor {
    /// An auditor of this database.
    pub(crate) fn new(
        pool: PgPool,
        store: Option<RecordStore>,
        assignments: Arc<AssignmentBuilder>,
        clock: Clock,
    ) -> Self {
        Self { pool, store, assignments, clock, reviewed_at: None }
    }

    /// Runs rounds without end, and calls `done` with their results. Cancel safe.
    pub(crate) async fn run(&mut self, mut done: impl FnMut(Result<AuditRound>)) {
        loop {
            let round = self.round().await;
            let idle = round.as_ref().map_or(true, |round| round.recounted == 0);
            done(round);
            if idle {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Recounts some matches, and suspends workers.
    pub(crate) async fn round(&mut self) -> Result<AuditRound> {
        let mut round = AuditRound::default();
        for waiting in match_audits::waiting_recounts(&self.pool).await? {
            match self.recount(waiting.id).await {
                Ok((state, reason)) => {
                    round.recounted += 1;
                    self.end(waiting.id, state, reason, &mut round).await?;
                }
                Err(AuditError::Database(error)) if db::is_transient(&error) => {
                    return Err(error);
                }
                Err(error) => self.put_off(waiting, &error, &mut round).await?,
            }
        }
        let compared = self.check_residuals().await?;
        // Shadow matches may have been reported to another coordinator, so reviews also happen every
        // few seconds.
        if round.recounted > 0
            || compared
            || self.reviewed_at.is_none_or(|at| at.elapsed() > REVIEW_INTERVAL)
        {
            round.suspended = worker_review::review(&self.pool, self.clock.now()).await?;
            self.reviewed_at = Some(Instant::now());
        }
        Ok(round)
    }

    /// Compares the results of workers in a complete edition. Returns whether there was one to
    /// compare.
    async fn check_residuals(&self) -> Result<bool> {
        let waited = self.clock.now() - MAX_DEFERRAL;
        let Some(edition) = worker_stats::unchecked(&self.pool, waited).await? else {
            return Ok(false);
        };
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        db::lift_time_limits(&mut *db).await?;
        // Usual sessions look up rows one after the other, by plans that are kept: over a whole edition
        // that takes hours.
        result_reuse::prepare(&mut *db).await?;
        let suspended = suspensions::all(&mut *db).await?;
        let untrusted = suspended.into_iter().map(|found| found.worker).collect();
        let salt = match tournaments::of_edition(&mut *db, edition).await {
            Ok(tournament) => tournament.seed.derive_number("audit/residual").cast_signed(),
            // It was dropped: any lots will do.
            Err(Error::RowNotFound) => 0,
            Err(error) => return Err(error),
        };
        let answers = worker_stats::samples(&mut *db, edition, salt, MAX_COMPARED).await?;
        let residuals = residual::residuals(&answers, &untrusted, worker_review::IMPROBABLE);
        worker_stats::insert_residuals(&mut *db, edition, &residuals, self.clock.now()).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Stores the result of a recount.
    async fn end(
        &self,
        id: MatchId,
        state: AuditState,
        reason: Option<String>,
        round: &mut AuditRound,
    ) -> Result<()> {
        let now = self.clock.now();
        let detail = reason.as_deref();
        let worker = match_audits::end_recount(&self.pool, id, state, detail, now).await?;
        if let (Some(worker), AuditState::Disagreed | AuditState::Unreadable) = (worker, state) {
            round.differences.push((id, worker, reason.unwrap_or_default()));
        }
        if matches!(state, AuditState::Absent | AuditState::Unreadable) {
            match_audits::shadow_instead(&self.pool, id).await?;
        }
        Ok(())
    }

    /// Defers a recount that is not possible now, up to [`MAX_FAULTS`] times.
    async fn put_off(
        &self,
        waiting: PendingRecount,
        error: &AuditError,
        round: &mut AuditRound,
    ) -> Result<()> {
        let PendingRecount { id, faults } = waiting;
        tracing::warn!(%id, %error, "a record cannot be recounted");
        if faults < MAX_FAULTS {
            return match_audits::record_failure(&self.pool, id).await;
        }
        self.end(id, AuditState::Skipped, Some(error.to_string()), round).await
    }

    /// Recounts a match.
    async fn recount(&self, id: MatchId) -> Result<(AuditState, Option<String>), AuditError> {
        let skipped = |reason: String| Ok((AuditState::Skipped, Some(reason)));
        let Some(edition) = editions::get(&self.pool, id.edition).await? else {
            return skipped("its edition is gone".to_owned());
        };
        if edition.rules != RULES_VERSION {
            return skipped(format!("it was played by version {} of the rules", edition.rules));
        }
        let Some(reported) = played_matches::find(&self.pool, id).await? else {
            return skipped("its result is gone".to_owned());
        };
        let Some(record) = self.record(id).await? else {
            return Ok((AuditState::Absent, None));
        };
        let planned = planned(&self.pool, &self.assignments, id).await?;
        Ok(
            match compare(
                self.assignments.games().clone(),
                record,
                planned,
                (reported.level, reported.result),
            )
            .await
            {
                Finding::Agreed => (AuditState::Agreed, None),
                Finding::Disagreed(reason) => (AuditState::Disagreed, Some(reason)),
                Finding::Unreadable(reason) => (AuditState::Unreadable, Some(reason)),
            },
        )
    }

    /// The record of a match, from the database or the record store.
    async fn record(&self, id: MatchId) -> Result<Option<Vec<u8>>, AuditError> {
        let Some(found) = records::find(&self.pool, id).await? else { return Ok(None) };
        let Slice { pack, start, length } = match found.record {
            Record::InDatabase(bytes) => return Ok(Some(bytes)),
            Record::InPack(slice) => slice,
        };
        let store = self.store.as_ref().ok_or(StoreError::NotConfigured)?;
        let start = u64::from(start.cast_unsigned());
        let range = start..start + u64::from(length.cast_unsigned());
        Ok(Some(store.get(found.edition, pack, range).await?))
    }
}

/// The planned match, and its clock.
async fn planned(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    id: MatchId,
) -> Result<(ClockRules, MatchAssignment<Params>), AuditError> {
    let planned = matches::range(pool, id.edition, id.number, 1).await?;
    let planned = planned.into_iter().next();
    let planned = planned.ok_or_else(|| AuditError::Nonsense("no such match".to_owned()))?;
    let (game, settings, assignment) = assignments.match_assignment(id.edition, planned).await?;
    let nonsense = |error: &dyn Display| AuditError::Nonsense(error.to_string());
    let game = assignments.games().find(&game).map_err(|error| nonsense(&error))?;
    let settings: Settings =
        serde_json::from_str(&settings).map_err(|error| nonsense(&format!("settings: {error}")))?;
    let due = assignment.complete(&game, &settings).map_err(|error| nonsense(&error))?;
    Ok((settings.clock, due))
}

/// Recounts on a blocking thread.
async fn compare(
    games: Games,
    record: Vec<u8>,
    planned: (ClockRules, MatchAssignment<Params>),
    reported: (String, MatchResult),
) -> Finding {
    let work = move || recount::recount(&games, &record, &planned, (&reported.0, &reported.1));
    let found = tokio::task::spawn_blocking(work).await;
    // A panic means that the rules met an impossible state.
    found.unwrap_or_else(|_| Finding::Disagreed("the rules cannot replay it".to_owned()))
}
