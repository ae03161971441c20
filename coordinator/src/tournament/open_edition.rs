//! Opens an edition: fixes the newest versions, plans their schedule, and stores the matches that
//! earlier editions have not played.
//!
//! This is one transaction: after a crash an edition exists as a whole or not at all. It runs on a
//! separate thread, because plans are computed while they are stored. It continues if the client
//! disconnects.

use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchNumber, TokenId, TournamentId, VersionId};
use arbiter_proto::trace::{self, Span};
use arbiter_schedule::{CertificateError, NameKey, ScheduleError};
use serde_json::{Value, json};
use sqlx::{Error, PgConnection, Result};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::episode_rounds::Rounds;
use super::lifecycle::{self, LifecycleError};
use super::plan_history::{self, PlanMode};
use super::planner::Planner;
use super::result_reuse::{self, PlanTarget};
use super::{FileError, TournamentFile};
use crate::db::editions::{self, Edition};
use crate::db::entrants::Roster;
use crate::db::tournaments::{self, Tournament};
use crate::db::{self, audit_log, edition_triggers, lots, partitions, trace_contexts, versions};
use crate::queue::{PlanError, Queue};

/// How a running edition affects the opening of a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IfRunning {
    /// The new edition is refused.
    Refuse,
    /// The new edition replaces the running one as soon as the new one can be played.
    Replace,
}

/// Why an edition cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The tournament has ended, or an edition runs.
    #[error(transparent)]
    State(#[from] LifecycleError),
    /// The schedule is impossible with these bots.
    #[error("cannot plan {0}: {1}")]
    Schedule(String, #[source] ScheduleError),
    /// The stored tournament file is not valid for this release.
    #[error("cannot read the settings of {0}: {1}")]
    Settings(String, #[source] FileError),
    /// The plan is not as balanced as its schedule guarantees.
    #[error(
        "cannot start {0}: its plan breaks a guarantee of its schedule ({1}); make a new plan with \
         `arbiter tournament start {0} --fresh`, or change the schedule"
    )]
    Broken(String, #[source] CertificateError),
    /// The queue refuses the plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The database failed.
    #[error("cannot open an edition: {0}")]
    Database(#[from] Error),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopped,
}

/// A request to open an edition.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// The tournament.
    pub tournament: TournamentId,
    /// What happens if an edition runs.
    pub if_running: IfRunning,
    /// Whether a plan of foursomes extends the plan before.
    pub mode: PlanMode,
    /// The token of the request, for the audit log.
    pub token: Option<TokenId>,
}

impl OpenRequest {
    /// Requests an edition that extends the plan of the edition before. The request has no token.
    pub fn new(tournament: TournamentId, if_running: IfRunning) -> Self {
        Self { tournament, if_running, mode: PlanMode::Incremental, token: None }
    }
}

/// Opens an edition over the newest version of each bot that is not withdrawn, and starts it.
///
/// # Errors
/// If the tournament has ended, another edition runs and must not be replaced, or there are too few
/// bots.
pub async fn open(
    queue: &Queue,
    request: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let queue = queue.clone();
    let runtime = Handle::current();
    let work = move || runtime.block_on(open_here(&queue, request, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn open_here(
    queue: &Queue,
    OpenRequest { tournament, if_running, mode, token }: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    let tournament = lifecycle::lock_open(db, tournament).await?;
    // Changes after this statement may be missing from the edition, so their triggers remain for
    // the next edition.
    let changes = edition_triggers::of_tournament(&mut *db, tournament.id).await?;
    let running = editions::running(&mut *db, tournament.id).await?;
    let newest = editions::of_tournament(&mut *db, tournament.id).await?.into_iter().next();
    if let (IfRunning::Refuse, Some(running)) = (if_running, &running) {
        let name = tournament.name;
        let number = running.number;
        return Err(LifecycleError::Runs { name, number }.into());
    }
    let edition = open_locked(db, queue.games(), &tournament, running.as_ref(), mode, now).await?;
    edition_triggers::delete(&mut *db, &changes).await?;
    if token.is_some() {
        let subject = format!("{} {}", tournament.name, edition.number);
        let detail = json!({
            "before": newest.map(|edition| audit_state(&edition)), "after": audit_state(&edition),
            "fresh": mode == PlanMode::Fresh,
        });
        audit_log::write(&mut *db, token, "tournament start", &subject, Some(&detail), now).await?;
    }
    transaction.commit().await?;
    analyze(queue, edition.id).await;
    Ok(edition)
}

/// Updates the statistics of Postgres' query planner for the tables of a new edition. This is not
/// part of the transaction that opens it, which would block all other `ANALYZE` until its end.
pub(super) async fn analyze(queue: &Queue, edition: EditionId) {
    let result = async { partitions::analyze(&mut *queue.pool().acquire().await?, edition).await };
    // If it fails, autovacuum analyzes the tables later.
    if let Err(error) = result.await {
        tracing::debug!(%edition, %error, "cannot analyze the tables of an edition");
    }
}

/// The state of an edition, for the audit log.
pub(crate) fn audit_state(edition: &Edition) -> Value {
    let Edition { number, state, matches, counted, .. } = edition;
    json!({"edition": number, "state": state.as_str(), "matches": matches, "counted": counted})
}

/// Plans an edition, starts it, and replaces the running edition `before`. The caller has begun the
/// transaction and locked the tournament.
pub(super) async fn open_locked(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    before: Option<&Edition>,
    mode: PlanMode,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let Tournament { id, name, settings, .. } = tournament;
    let seed = tournament.next_seed();
    let file = read_settings(games, name, settings)?;
    let versions: Vec<_> = versions::newest(&mut *db, *id).await?;
    let schedule_error = |cause| OpenError::Schedule(name.clone(), cause);
    let bots: Vec<_> = versions.iter().map(|version| version.bot).collect();
    let version_ids: Vec<_> = versions.into_iter().map(|version| version.id).collect();
    let mut span = trace(db, &version_ids, before).await?;
    db::limit_pause(&mut *db, db::MAX_PLANNING_PAUSE).await?;
    let entry =
        plan_history::next(db, (*id, seed), &file, &bots, mode).await?.map_err(schedule_error)?;
    let edition = insert_edition(db, *id, &file, &version_ids, now).await?;
    span.set("tournament", name.clone());
    span.set("edition", i64::from(edition.0));
    if let Some(parent) = span.context() {
        trace_contexts::store_edition(&mut *db, edition, &parent).await?;
    }
    if let Some(history) = &entry.history {
        editions::set_plan_history(&mut *db, edition, &json!(history)).await?;
    }
    let names: Vec<_> = {
        let roster = Roster::of(&mut *db, edition).await?;
        roster.iter().map(|(_, named)| NameKey::of(seed, &named.name)).collect()
    };
    let planner = Planner::new(&file, &entry.field, &names, seed).map_err(schedule_error)?;
    let replaces = before.map(|before| (before.id, now));
    let chained = planner.is_some_and(|planner| planner.is_chained());
    let to = PlanTarget { edition, chained, first: MatchNumber(0), replaces };
    if let Some(planner) = planner {
        planner.prove().map_err(|cause| OpenError::Broken(name.clone(), cause))?;
        db::limit_pause(&mut *db, db::MAX_PAUSE).await?;
        result_reuse::add_plan(db, to, planner.plan()).await?;
    } else {
        let rounds = Rounds::new(&file, names.len(), seed)
            .map_err(|cause| PlanError::Invalid(edition, cause.to_string()))?;
        db::limit_pause(&mut *db, db::MAX_PAUSE).await?;
        result_reuse::add_plan(db, to, rounds.plan()).await?;
    }
    crate::queue::check_plan(db, edition).await?;
    editions::start(&mut *db, edition).await?;
    match before {
        Some(before) if tournament.edition_seed(before.number) == seed => {
            lots::replace(&mut *db, before.id, edition).await?;
        }
        // Matches with another seed cannot be reused.
        Some(before) => drop(lots::cancel(&mut *db, before.id).await?),
        None => {}
    }
    tournaments::set_last_error(&mut *db, *id, None).await?;
    Ok(editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?)
}

/// Begins the trace span of an edition, and ends the trace of the replaced edition. The span
/// continues the traces of versions that no earlier edition includes.
async fn trace(
    db: &mut PgConnection,
    versions: &[VersionId],
    before: Option<&Edition>,
) -> Result<Span> {
    if !trace::is_enabled() {
        return Ok(Span::NONE);
    }
    if let Some(before) = before {
        let parent = trace_contexts::take_edition(&mut *db, before.id).await?;
        drop(Span::since("edition replaced", parent.as_ref(), before.created_at.into()));
    }
    let parents = trace_contexts::take_versions(db, versions).await?;
    Ok(Span::join("edition opened", &parents))
}

/// Reads the stored tournament file.
pub(super) fn read_settings(
    games: &Games,
    name: &str,
    settings: &Value,
) -> Result<TournamentFile, OpenError> {
    TournamentFile::from_json(games, settings)
        .map_err(|cause| OpenError::Settings(name.to_owned(), cause))
}

/// Inserts an edition with these versions.
async fn insert_edition(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
    versions: &[VersionId],
    now: OffsetDateTime,
) -> Result<EditionId> {
    let components = file.game().columns.len();
    let components = i16::try_from(components).expect("a score has a few numbers");
    let edition = editions::create(&mut *db, tournament, components, false, now).await?;
    editions::enter(&mut *db, edition, versions).await?;
    Ok(edition)
}
