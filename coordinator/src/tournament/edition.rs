//! Editions: the newest versions are fixed, the schedule is planned for them, and they are played.
//!
//! All of it is one transaction: whatever is killed in between, an edition is there as a whole or
//! not at all. It works on a thread of its own, because plans are computed while they are stored,
//! and whoever asked for it may leave: it goes on all the same.

use arbiter_games::Seed;
use arbiter_proto::ids::{EditionId, TournamentId, VersionId};
use sqlx::{Error, PgConnection};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::create::{self, StateError};
use super::episodes::Rounds;
use super::planner::Planner;
use super::{FileError, TournamentFile};
use crate::db::editions::{self, Edition, EditionState};
use crate::db::tournaments::Tournament;
use crate::db::{lots, versions};
use crate::queue::{PlanError, Queue};
use crate::schedule::ScheduleError;

/// What is done if an edition is being played when the next one is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Running {
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
    State(#[from] StateError),
    /// These bots cannot be matched as the file says.
    #[error("cannot plan {name}: {cause}")]
    Schedule {
        /// The tournament's name.
        name: String,
        /// Why, and what helps.
        #[source]
        cause: ScheduleError,
    },
    /// The file of the tournament was stored by another program.
    #[error("cannot read the settings of {name}: {cause}")]
    Settings {
        /// The tournament's name.
        name: String,
        /// What is wrong with them.
        #[source]
        cause: FileError,
    },
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

/// Opens an edition over the newest version of each bot that was not withdrawn, and starts it.
///
/// # Errors
/// If the tournament has ended, or another edition runs and is not to be replaced, or there are
/// too few bots, or the database fails.
pub async fn open(
    queue: &Queue,
    tournament: TournamentId,
    running: Running,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let (queue, runtime) = (queue.clone(), Handle::current());
    let work = move || runtime.block_on(open_here(&queue, tournament, running, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn open_here(
    queue: &Queue,
    tournament: TournamentId,
    running: Running,
    now: OffsetDateTime,
) -> Result<Edition, OpenError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    let tournament = create::open(db, tournament).await?;
    let before = editions::of_tournament(&mut *db, tournament.id).await?;
    let before = before.into_iter().find(|edition| edition.state == EditionState::Running);
    if let (Running::Refuse, Some(before)) = (running, &before) {
        let (name, number) = (tournament.name, before.number);
        return Err(StateError::Runs { name, number }.into());
    }
    let id = plan(db, &tournament, now).await?;
    if let Some(before) = before
        && editions::cancel(&mut *db, before.id, now).await?
    {
        lots::cancel(db, before.id).await?;
    }
    editions::start(&mut *db, id).await?;
    let opened = editions::get(&mut *db, id).await?.ok_or(Error::RowNotFound)?;
    transaction.commit().await?;
    Ok(opened)
}

/// Fixes the versions and stores the plan of a new edition.
async fn plan(
    db: &mut PgConnection,
    tournament: &Tournament,
    now: OffsetDateTime,
) -> Result<EditionId, OpenError> {
    let Tournament { id, name, settings, seed, .. } = tournament;
    let file = TournamentFile::from_json(settings)
        .map_err(|cause| OpenError::Settings { name: name.clone(), cause })?;
    let entered: Vec<_> = versions::newest(&mut *db, *id).await?;
    let entered: Vec<_> = entered.into_iter().map(|version| version.id).collect();
    let planner = Planner::new(&file, entered.len(), *seed)
        .map_err(|cause| OpenError::Schedule { name: name.clone(), cause })?;
    let edition = enter(db, *id, &file, &entered, now).await?;
    match planner {
        Some(planner) => crate::queue::add(db, edition, planner.plan()).await?,
        None => first_round(db, edition, &file, entered.len(), *seed).await?,
    };
    crate::queue::make_ready(db, edition).await?;
    Ok(edition)
}

/// Makes an edition of these versions.
async fn enter(
    db: &mut PgConnection,
    tournament: TournamentId,
    file: &TournamentFile,
    entered: &[VersionId],
    now: OffsetDateTime,
) -> Result<EditionId, Error> {
    let components = file.game().score_columns().len();
    let components = i16::try_from(components).expect("a score has a few numbers");
    let edition = editions::create(&mut *db, tournament, components, false, now).await?;
    editions::enter(&mut *db, edition, entered).await?;
    Ok(edition)
}

/// Plans the first round of all episodes.
async fn first_round(
    db: &mut PgConnection,
    edition: EditionId,
    file: &TournamentFile,
    bots: usize,
    seed: Seed,
) -> Result<u64, PlanError> {
    let rounds = Rounds::new(file, bots, seed)
        .map_err(|cause| PlanError::Nonsense { edition, reason: cause.to_string() })?;
    crate::queue::add(db, edition, rounds.plan()).await
}
