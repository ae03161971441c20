//! What workers report is looked at a second time: workers are not believed.
//!
//! # Theory of operation
//!
//! When results are counted, the transaction that counts them also writes down which of them are to
//! be looked at (`queue/audit_selection.rs`): a share of all by the tournament's secret seed, and
//! every one with a forfeit, a bad answer or a score that stands alone. So no result is counted
//! without its chance to be chosen, and none is chosen twice.
//!
//! The leader *recounts*: it takes the record that came with the report, replays it through the
//! rules, and compares the scores, the forfeits and the hash of the transcript with what was
//! reported, and the parameters, the seed and the bots with what was planned. It runs no bot, one
//! record after the other on one thread. A record that gives another result than its report proves
//! that the worker is broken or lies, and suspends it (`crate::worker_suspension`).
//!
//! A share of the matches, and those that were to be recounted and have no record, is played once
//! more by another worker (`match_audit/shadow.rs`).
//!
//! When an edition is complete, the results of each worker are compared with those of the others
//! (`ranking/residual.rs`): once nothing is played, or some minutes later.
//!
//! No result is ever changed here. What a suspended worker reported counts until an organiser
//! declares it void.

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
use crate::db::match_audits::{self, AuditState, Waiting};
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

/// How often it is looked whether something is to be recounted.
const LOOK: Duration = Duration::from_millis(500);
/// How often what is known of all workers is looked at, if nothing new is known here.
const REVIEW: Duration = Duration::from_secs(5);
/// How many matches of an edition are compared, about: that takes seconds.
const MOST_COMPARED: i64 = 50_000;
/// How long that may be put off for what is played: it takes a processor from it.
const GIVES_WAY: time::Duration = time::Duration::minutes(10);
/// So often a record that cannot be read is tried again.
const MOST_FAULTS: i16 = 20;

/// Why a record is not recounted this time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] Error),
    /// The store of records failed.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// It cannot be said what was to be played.
    #[error("{0}")]
    Assignment(#[from] AssignmentError),
    /// What was to be played makes no sense.
    #[error("what was planned makes no sense: {0}")]
    Nonsense(String),
}

/// What a round has done.
#[derive(Debug, Default)]
pub(crate) struct AuditRound {
    /// Records that were dealt with.
    pub(crate) recounted: usize,
    /// Differences: the match, the worker that reported it, what differs.
    pub(crate) differences: Vec<(MatchId, WorkerId, String)>,
    /// Workers that were suspended.
    pub(crate) suspended: Vec<SuspendedWorker>,
}

/// Recounts, and suspends workers. The leader does so; several at once do no harm.
#[derive(Debug)]
pub(crate) struct Auditor {
    pool: PgPool,
    store: Option<RecordStore>,
    assignments: Arc<AssignmentBuilder>,
    clock: Clock,
    /// When it was looked last whether workers are to be suspended.
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

    /// Works round after round and hands over what each did. It may be dropped at any moment.
    pub(crate) async fn run(&mut self, mut done: impl FnMut(Result<AuditRound>)) {
        loop {
            let round = self.round().await;
            let idle = round.as_ref().map_or(true, |round| round.recounted == 0);
            done(round);
            if idle {
                tokio::time::sleep(LOOK).await;
            }
        }
    }

    /// Recounts some records, and suspends the workers that are proven wrong.
    pub(crate) async fn round(&mut self) -> Result<AuditRound> {
        let mut round = AuditRound::default();
        for waiting in match_audits::waiting_recounts(&self.pool).await? {
            match self.recount(waiting.id).await {
                Ok((state, reason)) => {
                    round.recounted += 1;
                    self.end(waiting.id, state, reason, &mut round).await?;
                }
                Err(AuditError::Database(error)) if db::is_passing(&error) => {
                    return Err(error);
                }
                Err(error) => self.put_off(waiting, &error, &mut round).await?,
            }
        }
        let compared = self.check_residuals().await?;
        // Second plays may have been reported to another coordinator, so it also looks every few
        // seconds.
        if round.recounted > 0
            || compared
            || self.reviewed_at.is_none_or(|at| at.elapsed() > REVIEW)
        {
            round.suspended = worker_review::review(&self.pool, self.clock.now()).await?;
            self.reviewed_at = Some(Instant::now());
        }
        Ok(round)
    }

    /// Compares what workers reported of an edition that has become complete: whether there was one
    /// for which it is time.
    async fn check_residuals(&self) -> Result<bool> {
        let waited = self.clock.now() - GIVES_WAY;
        let Some(edition) = worker_stats::unchecked(&self.pool, waited).await? else {
            return Ok(false);
        };
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        db::be_patient(&mut *db).await?;
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
        let answers = worker_stats::answers(&mut *db, edition, salt, MOST_COMPARED).await?;
        let residuals = residual::residuals(&answers, &untrusted, worker_review::IMPROBABLE);
        worker_stats::keep_residuals(&mut *db, edition, &residuals, self.clock.now()).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// Stores what a recount came to.
    async fn end(
        &self,
        id: MatchId,
        state: AuditState,
        reason: Option<String>,
        round: &mut AuditRound,
    ) -> Result<()> {
        let (now, told) = (self.clock.now(), reason.as_deref());
        let worker = match_audits::end_recount(&self.pool, id, state, told, now).await?;
        if let (Some(worker), AuditState::Disagreed | AuditState::Unreadable) = (worker, state) {
            round.differences.push((id, worker, reason.unwrap_or_default()));
        }
        if matches!(state, AuditState::Absent | AuditState::Unreadable) {
            match_audits::shadow_instead(&self.pool, id).await?;
        }
        Ok(())
    }

    /// Leaves a record for later which cannot be read now; not for ever.
    async fn put_off(
        &self,
        waiting: Waiting,
        error: &AuditError,
        round: &mut AuditRound,
    ) -> Result<()> {
        let Waiting { id, faults } = waiting;
        tracing::warn!(%id, %error, "a record cannot be recounted");
        if faults < MOST_FAULTS {
            return match_audits::put_off(&self.pool, id).await;
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

    /// The record of a match, from wherever it is.
    async fn record(&self, id: MatchId) -> Result<Option<Vec<u8>>, AuditError> {
        let Some(found) = records::find(&self.pool, id).await? else { return Ok(None) };
        let Slice { pack, start, length } = match found.record {
            Record::Here(bytes) => return Ok(Some(bytes)),
            Record::There(slice) => slice,
        };
        let store = self.store.as_ref().ok_or(StoreError::NotConfigured)?;
        let start = u64::from(start.cast_unsigned());
        let range = start..start + u64::from(length.cast_unsigned());
        Ok(Some(store.get(found.edition, pack, range).await?))
    }
}

/// What was to be played, and by which clock.
async fn planned(
    pool: &PgPool,
    assignments: &AssignmentBuilder,
    id: MatchId,
) -> Result<(ClockRules, MatchAssignment<Params>), AuditError> {
    let planned = matches::range(pool, id.edition, id.number, 1).await?;
    let planned = planned.into_iter().next();
    let planned = planned.ok_or_else(|| AuditError::Nonsense("no such match".to_owned()))?;
    let (game, settings, told) = assignments.match_assignment(id.edition, planned).await?;
    let nonsense = |error: &dyn Display| AuditError::Nonsense(error.to_string());
    let game = assignments.games().find(&game).map_err(|error| nonsense(&error))?;
    let settings: Settings =
        serde_json::from_str(&settings).map_err(|error| nonsense(&format!("settings: {error}")))?;
    let due = told.complete(&game, &settings).map_err(|error| nonsense(&error))?;
    Ok((settings.clock, due))
}

/// Recounts on a thread that may take its time.
async fn compare(
    games: Games,
    record: Vec<u8>,
    planned: (ClockRules, MatchAssignment<Params>),
    reported: (String, MatchResult),
) -> Finding {
    let work = move || recount::recount(&games, &record, &planned, (&reported.0, &reported.1));
    let found = tokio::task::spawn_blocking(work).await;
    // Only rules that meet what they never should can panic.
    found.unwrap_or_else(|_| Finding::Disagreed("the rules cannot replay it".to_owned()))
}
