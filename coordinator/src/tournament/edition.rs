//! Editions: the newest versions are fixed, the schedule is planned for them, and they are played,
//! but for the matches that earlier editions have played already.
//!
//! All of it is one transaction: whatever is killed in between, an edition is there as a whole or
//! not at all. It works on a thread of its own, because plans are computed while they are stored,
//! and whoever asked for it may leave: it goes on all the same.

use arbiter_games::Games;
use arbiter_proto::ids::{EditionId, MatchNumber, TokenId, TournamentId, VersionId};
use arbiter_proto::trace::{self, Span};
use arbiter_schedule::{CertificateError, NameKey, ScheduleError};
use serde_json::{Value, json};
use sqlx::{Error, PgConnection, Result};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::episodes::Rounds;
use super::lifecycle::{self, LifecycleError};
use super::plan_history::{self, PlanMode};
use super::planner::Planner;
use super::result_reuse::{self, To};
use super::{FileError, TournamentFile};
use crate::db::editions::{self, Edition};
use crate::db::entrants::Roster;
use crate::db::tournaments::{self, Tournament};
use crate::db::{self, audit_log, edition_triggers, lots, partitions, trace_contexts, versions};
use crate::queue::{PlanError, Queue};

/// What is done if an edition is being played when the next one is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IfRunning {
    /// Nothing: there is no new one.
    Refuse,
    /// The new one takes its place, at the moment it can be played.
    Replace,
}

/// Why there is no new edition.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The tournament has ended, or an edition is being played.
    #[error(transparent)]
    State(#[from] LifecycleError),
    /// These bots cannot be matched as the file says.
    #[error("cannot plan {0}: {1}")]
    Schedule(String, #[source] ScheduleError),
    /// The file of the tournament was stored by another program.
    #[error("cannot read the settings of {0}: {1}")]
    Settings(String, #[source] FileError),
    /// The plan is not as balanced as its schedule promises.
    #[error(
        "cannot start {0}: its plan breaks its promise ({1}); nothing is played. Plan it \
         from the beginning with arbiter tournament start {0} --fresh, or change its schedule"
    )]
    Broken(String, #[source] CertificateError),
    /// The plan is refused.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The database failed.
    #[error("cannot open an edition: {0}")]
    Database(#[from] Error),
    /// The program stops.
    #[error("the coordinator stops")]
    Stopped,
}

/// An edition that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest {
    /// Of which tournament.
    pub tournament: TournamentId,
    /// What is done if an edition is being played.
    pub if_running: IfRunning,
    /// Whether tables of four are planned from the beginning, whatever was planned before.
    pub mode: PlanMode,
    /// Whose token asks for it, which the audit log notes.
    pub who: Option<TokenId>,
}

impl OpenRequest {
    /// An edition whose plan continues that of the edition before.
    pub fn new(tournament: TournamentId, if_running: IfRunning) -> Self {
        Self { tournament, if_running, mode: PlanMode::Incremental, who: None }
    }
}

/// Opens an edition over the newest version of each bot that was not withdrawn, and starts it. It
/// fails if the tournament has ended, or another edition runs and is not to be replaced, or there
/// are too few bots.
pub async fn open(
    queue: &Queue,
    request: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let (queue, runtime) = (queue.clone(), Handle::current());
    let work = move || runtime.block_on(open_here(&queue, request, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn open_here(
    queue: &Queue,
    OpenRequest { tournament, if_running, mode, who }: OpenRequest,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::be_patient(&mut *db).await?;
    let tournament = lifecycle::open(db, tournament).await?;
    // What changes from here on may be missing from the edition, and makes another one due.
    let changes = edition_triggers::of_tournament(&mut *db, tournament.id).await?;
    let before = editions::playing(&mut *db, tournament.id).await?;
    let newest = editions::of_tournament(&mut *db, tournament.id).await?.into_iter().next();
    if let (IfRunning::Refuse, Some(before)) = (if_running, &before) {
        let (name, number) = (tournament.name, before.number);
        return Err(LifecycleError::Runs { name, number }.into());
    }
    let opened = begin(db, queue.games(), &tournament, before.as_ref(), mode, now).await?;
    edition_triggers::forget(&mut *db, &changes).await?;
    if who.is_some() {
        let subject = format!("{} {}", tournament.name, opened.number);
        let detail = json!({
            "before": newest.map(|edition| audit_state(&edition)), "after": audit_state(&opened),
            "fresh": mode == PlanMode::Fresh,
        });
        audit_log::write(&mut *db, who, "tournament start", &subject, Some(&detail), now).await?;
    }
    transaction.commit().await?;
    analyze(queue, opened.id).await;
    Ok(opened)
}

/// Tells the planner what the tables of the queue look like with a new edition. That is not done in
/// the transaction that opens it: until its end nothing else could be told to the planner.
pub(super) async fn analyze(queue: &Queue, edition: EditionId) {
    let analyzed =
        async { partitions::analyze(&mut *queue.pool().acquire().await?, edition).await };
    // The server does so itself in a while.
    if let Err(error) = analyzed.await {
        tracing::debug!(%edition, %error, "the planner does not know of it yet");
    }
}

/// An edition, as the audit log tells of it.
pub(crate) fn audit_state(edition: &Edition) -> Value {
    let Edition { number, state, matches, counted, .. } = edition;
    json!({"edition": number, "state": state.as_str(), "matches": matches, "counted": counted})
}

/// Plans an edition and starts it in the place of the one that runs, in a transaction of the
/// caller's, who has locked the tournament.
pub(super) async fn begin(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    before: Option<&Edition>,
    mode: PlanMode,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let Tournament { id, name, settings, .. } = tournament;
    let seed = tournament.next_seed();
    let file = read(games, name, settings)?;
    let entered: Vec<_> = versions::newest(&mut *db, *id).await?;
    let unplanned = |cause| OpenError::Schedule(name.clone(), cause);
    let bots: Vec<_> = entered.iter().map(|version| version.bot).collect();
    let entered: Vec<_> = entered.into_iter().map(|version| version.id).collect();
    let mut span = trace(db, &entered, before).await?;
    db::pause_at_most(&mut *db, db::PLANNING_PAUSE).await?;
    let entry =
        plan_history::next(db, (*id, seed), &file, &bots, mode).await?.map_err(unplanned)?;
    let edition = enter(db, *id, &file, &entered, now).await?;
    span.set("tournament", name.clone());
    span.set("edition", i64::from(edition.0));
    if let Some(parent) = span.context() {
        trace_contexts::keep_edition(&mut *db, edition, &parent).await?;
    }
    if let Some(descent) = &entry.descent {
        editions::set_lineage(&mut *db, edition, &json!(descent)).await?;
    }
    let names: Vec<_> = {
        let roster = Roster::of(&mut *db, edition).await?;
        roster.iter().map(|(_, named)| NameKey::of(seed, &named.name)).collect()
    };
    let planner = Planner::new(&file, &entry.field, &names, seed).map_err(unplanned)?;
    let replaces = before.map(|before| (before.id, now));
    let chained = planner.is_some_and(|planner| planner.is_chained());
    let to = To { edition, chained, first: MatchNumber(0), replaces };
    if let Some(planner) = planner {
        planner.prove().map_err(|cause| OpenError::Broken(name.clone(), cause))?;
        db::pause_at_most(&mut *db, db::PAUSE).await?;
        result_reuse::add(db, to, planner.plan()).await?;
    } else {
        let rounds = Rounds::new(&file, names.len(), seed)
            .map_err(|cause| PlanError::Nonsense(edition, cause.to_string()))?;
        db::pause_at_most(&mut *db, db::PAUSE).await?;
        result_reuse::add(db, to, rounds.plan()).await?;
    }
    crate::queue::make_ready(db, edition).await?;
    editions::start(&mut *db, edition).await?;
    match before {
        Some(before) if tournament.edition_seed(before.number) == seed => {
            lots::replace(&mut *db, before.id, edition).await?;
        }
        // What is being played with another seed is of no use.
        Some(before) => drop(lots::cancel(&mut *db, before.id).await?),
        None => {}
    }
    tournaments::trouble(&mut *db, *id, None).await?;
    Ok(editions::get(&mut *db, edition).await?.ok_or(Error::RowNotFound)?)
}

/// Begins the span of an edition that is being opened: it follows from the versions that it is the
/// first to show. The trace of the one that it replaces ends.
async fn trace(
    db: &mut PgConnection,
    entered: &[VersionId],
    before: Option<&Edition>,
) -> Result<Span> {
    if !trace::is_on() {
        return Ok(Span::NONE);
    }
    if let Some(before) = before {
        let parent = trace_contexts::take_edition(&mut *db, before.id).await?;
        drop(Span::since("edition replaced", parent.as_ref(), before.created_at.into()));
    }
    let parents = trace_contexts::take_versions(db, entered).await?;
    Ok(Span::join("edition opened", &parents))
}

/// The file of a tournament.
pub(super) fn read(
    games: &Games,
    name: &str,
    settings: &Value,
) -> Result<TournamentFile, OpenError> {
    TournamentFile::from_json(games, settings)
        .map_err(|cause| OpenError::Settings(name.to_owned(), cause))
}

/// Makes an edition of these versions.
async fn enter(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
    entered: &[VersionId],
    now: OffsetDateTime,
) -> Result<EditionId> {
    let components = file.game().columns.len();
    let components = i16::try_from(components).expect("a score has a few numbers");
    let edition = editions::create(&mut *db, tournament, components, false, now).await?;
    editions::enter(&mut *db, edition, entered).await?;
    Ok(edition)
}
