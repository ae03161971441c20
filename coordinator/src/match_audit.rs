//! Audits of matches: workers are not trusted, so a share of their reports is verified.
//!
//! # Theory of operation
//!
//! The transaction that counts results also selects some of them for audits
//! (`queue/audit_selection.rs`). It selects a share of all matches by the tournament's secret seed,
//! and every match with a forfeit, a bad reply or an outlying score. So each result is considered
//! exactly once.
//!
//! The leader *recounts* matches. It replays the record of a report through the rules. It compares
//! the scores, forfeits and transcript hash with the report, and the parameters, seed and bots with
//! the plan. A recount runs no bot, and recounts run one after the other on one thread. A record
//! that contradicts its report proves that the worker is broken or dishonest, so the worker is
//! suspended (`crate::worker_suspension`).
//!
//! Another worker plays a share of the matches again, and also the matches that were selected for a
//! recount but have no record (`match_audit/shadow_play.rs`).
//!
//! When an edition is complete, the results of each worker are compared with those of the others
//! (`ranking/residual.rs`). The comparison waits until no edition is running, but at most ten
//! minutes.
//!
//! Audits change no result. The results of a suspended worker count until an organiser voids them.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{ClockRules, Games, Params, RULES_VERSION};
use arbiter_proto::assignment::MatchAssignment;
use arbiter_proto::ids::{EditionId, MatchId, WorkerId};
use arbiter_proto::settings::Settings;
use arbiter_ranking::residual;
use sqlx::{Error, PgPool, Result};
use tokio::time::Instant;

use crate::database_clock::Clock;
use crate::db::editions::Edition;
use crate::db::match_audits::{self, AuditState, PendingRecount};
use crate::db::played_matches;
use crate::db::records::{self, Record, Slice};
use crate::db::results::MatchResult;
use crate::db::{self, editions, matches, tournaments, worker_stats, worker_suspensions};
use crate::game_package;
use crate::record_store::{RecordStore, StoreError};
use crate::tournament::lot_assignment::{AssignmentBuilder, AssignmentError};
use crate::worker_suspension::SuspendedWorker;

mod record_replay;
pub mod shadow_play;
pub mod worker_review;

use record_replay::Finding;

/// The pause after a round without recounts.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often the audits of all workers are reviewed if there are no recounts.
const REVIEW_INTERVAL: Duration = Duration::from_secs(5);
/// Approximate maximum number of matches in a comparison of workers. A comparison takes seconds.
const MAX_COMPARED: i64 = 50_000;
/// How long a comparison is deferred while an edition runs. A comparison uses a whole processor.
const MAX_DEFERRAL: time::Duration = time::Duration::minutes(10);
/// Maximum number of attempts to read a record.
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
    /// The plan of the match is not valid.
    #[error("the plan of the match is not valid: {0}")]
    InvalidPlan(String),
}

/// The result of a recount.
#[derive(Debug)]
enum Recount {
    /// The record was compared with the report.
    Compared(Finding),
    /// There is no record.
    NoRecord,
    /// The rules are those of a game package, which run on workers only.
    PackageRules,
    /// It is not possible, for this reason.
    Skipped(String),
}

impl Recount {
    /// Whether another worker plays the match again, because the record proves nothing.
    fn needs_shadow(&self) -> bool {
        match self {
            Self::Compared(finding) => matches!(finding, Finding::Unreadable(_)),
            Self::NoRecord | Self::PackageRules => true,
            Self::Skipped(_) => false,
        }
    }

    /// The state of the audit, and its reason.
    fn into_state(self) -> (AuditState, Option<String>) {
        match self {
            Self::Compared(Finding::Agreed) => (AuditState::Agreed, None),
            Self::Compared(Finding::Disagreed(reason)) => (AuditState::Disagreed, Some(reason)),
            Self::Compared(Finding::Unreadable(reason)) => (AuditState::Unreadable, Some(reason)),
            Self::NoRecord => (AuditState::Absent, None),
            Self::PackageRules => {
                let reason = "the coordinator runs no rules of game packages".to_owned();
                (AuditState::Skipped, Some(reason))
            }
            Self::Skipped(reason) => (AuditState::Skipped, Some(reason)),
        }
    }
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

/// Recounts matches and suspends workers. It runs on the leader. Several auditors at the same time
/// are safe.
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

    /// Runs rounds without end, and calls `on_round` with the result of each. Cancel safe.
    pub(crate) async fn run(&mut self, mut on_round: impl FnMut(Result<AuditRound>)) {
        loop {
            let round = self.round().await;
            let is_idle = round.as_ref().map_or(true, |round| round.recounted == 0);
            on_round(round);
            if is_idle {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    }

    /// Recounts some matches, and suspends workers.
    pub(crate) async fn round(&mut self) -> Result<AuditRound> {
        let mut round = AuditRound::default();
        for pending in match_audits::waiting_recounts(&self.pool).await? {
            match self.recount(pending.id).await {
                Ok(recount) => {
                    round.recounted += 1;
                    self.store_result(pending.id, recount, &mut round).await?;
                }
                Err(AuditError::Database(error)) if db::is_transient(&error) => {
                    return Err(error);
                }
                Err(error) => self.defer(pending, &error, &mut round).await?,
            }
        }
        let has_compared = self.check_residuals().await?;
        // Another coordinator may have received reports of shadow matches, so a review also happens
        // every few seconds.
        if round.recounted > 0
            || has_compared
            || self.reviewed_at.is_none_or(|at| at.elapsed() > REVIEW_INTERVAL)
        {
            round.suspended = worker_review::review(&self.pool, self.clock.now()).await?;
            self.reviewed_at = Some(Instant::now());
        }
        Ok(round)
    }

    /// Compares the results of workers in a complete edition. Returns whether there was such an
    /// edition.
    async fn check_residuals(&self) -> Result<bool> {
        let deferrable_after = self.clock.now() - MAX_DEFERRAL;
        let Some(edition) = worker_stats::unchecked(&self.pool, deferrable_after).await? else {
            return Ok(false);
        };
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        db::lift_time_limits(&mut *db).await?;
        // With the usual settings Postgres looks up rows one by one. For a whole edition this takes
        // hours.
        db::prepare_large_join(&mut *db).await?;
        let suspended = worker_suspensions::all(&mut *db).await?;
        let untrusted = suspended.into_iter().map(|row| row.worker).collect();
        let salt = match tournaments::of_edition(&mut *db, edition).await {
            Ok(tournament) => tournament.seed.derive_number("audit/residual").cast_signed(),
            // The tournament was deleted, so the choice of lots does not matter.
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
    async fn store_result(
        &self,
        id: MatchId,
        recount: Recount,
        round: &mut AuditRound,
    ) -> Result<()> {
        let now = self.clock.now();
        let needs_shadow = recount.needs_shadow();
        let (state, reason) = recount.into_state();
        let detail = reason.as_deref();
        // A recount that has ended is not read again, so its shadow match is requested with it.
        let mut transaction = self.pool.begin().await?;
        if needs_shadow {
            match_audits::shadow_instead(&mut *transaction, id).await?;
        }
        let worker = match_audits::end_recount(&mut *transaction, id, state, detail, now).await?;
        transaction.commit().await?;
        if let (Some(worker), AuditState::Disagreed | AuditState::Unreadable) = (worker, state) {
            round.differences.push((id, worker, reason.unwrap_or_default()));
        }
        Ok(())
    }

    /// Defers a recount that is not possible now, up to [`MAX_FAULTS`] times.
    async fn defer(
        &self,
        pending: PendingRecount,
        error: &AuditError,
        round: &mut AuditRound,
    ) -> Result<()> {
        let PendingRecount { id, faults } = pending;
        tracing::warn!(%id, %error, "a record cannot be recounted");
        if faults < MAX_FAULTS {
            return match_audits::record_failure(&self.pool, id).await;
        }
        self.store_result(id, Recount::Skipped(error.to_string()), round).await
    }

    /// Recounts a match.
    async fn recount(&self, id: MatchId) -> Result<Recount, AuditError> {
        let skipped = |reason: String| Ok(Recount::Skipped(reason));
        let Some(edition) = self.edition_of(id).await? else {
            return skipped("its edition is gone".to_owned());
        };
        if self.is_package(&edition).await? {
            return Ok(Recount::PackageRules);
        }
        if edition.rules != RULES_VERSION {
            return skipped(format!("it was played by version {} of the rules", edition.rules));
        }
        let Some(reported) = played_matches::find(&self.pool, id).await? else {
            return skipped("its result is gone".to_owned());
        };
        let Some(record) = self.record(id).await? else {
            return Ok(Recount::NoRecord);
        };
        let planned = planned_match(&self.pool, &self.assignments, edition.id, id).await?;
        let games = self.assignments.games().clone();
        let reported = (reported.level, reported.result);
        Ok(Recount::Compared(compare(games, record, planned, reported).await))
    }

    /// Whether the game of an edition is a package, whose rules run on workers only.
    async fn is_package(&self, edition: &Edition) -> Result<bool> {
        let game = editions::game(&self.pool, self.assignments.games(), edition.id).await?;
        Ok(game.package.is_some())
    }

    /// The edition that added a match; `None` if its tournament was deleted.
    async fn edition_of(&self, id: MatchId) -> Result<Option<Edition>> {
        match editions::adding(&self.pool, id).await {
            Ok(edition) => editions::get(&self.pool, edition).await,
            Err(Error::RowNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The record of a match, from the database or the record store.
    async fn record(&self, id: MatchId) -> Result<Option<Vec<u8>>, AuditError> {
        let Some(record) = records::find(&self.pool, id).await? else { return Ok(None) };
        let Slice { pack, start, length } = match record {
            Record::InDatabase(bytes) => return Ok(Some(bytes)),
            Record::InPack(slice) => slice,
        };
        let store = self.store.as_ref().ok_or(StoreError::NotConfigured)?;
        let start = u64::from(start.cast_unsigned());
        let range = start..start + u64::from(length.cast_unsigned());
        Ok(Some(store.get(id.tournament, pack, range).await?))
    }
}

/// The match that this edition added to the plan, and its clock.
async fn planned_match(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    edition: EditionId,
    id: MatchId,
) -> Result<(ClockRules, MatchAssignment<Params>), AuditError> {
    let rows = matches::range(pool, id.tournament, id.number, 1).await?;
    let row = rows
        .into_iter()
        .next()
        .ok_or_else(|| AuditError::InvalidPlan("no such match".to_owned()))?;
    let (game, settings, assignment) = assignments.match_assignment(edition, row).await?;
    let invalid_plan = |error: &dyn Display| AuditError::InvalidPlan(error.to_string());
    let settings: Settings = serde_json::from_str(&settings)
        .map_err(|error| invalid_plan(&format!("settings: {error}")))?;
    let game = game_package::find(assignments.games(), &game, settings.package.as_ref())
        .map_err(|error| invalid_plan(&error))?;
    let planned = assignment.complete(&game, &settings).map_err(|error| invalid_plan(&error))?;
    Ok((settings.clock, planned))
}

/// Recounts on a blocking thread.
async fn compare(
    games: Games,
    record: Vec<u8>,
    planned: (ClockRules, MatchAssignment<Params>),
    reported: (String, MatchResult),
) -> Finding {
    let work =
        move || record_replay::compare(&games, &record, &planned, (&reported.0, &reported.1));
    let finding = tokio::task::spawn_blocking(work).await;
    // A panic means that the record leads to an impossible state of the game.
    finding.unwrap_or_else(|_| Finding::Disagreed("the rules cannot replay it".to_owned()))
}
