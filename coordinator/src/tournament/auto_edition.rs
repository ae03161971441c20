//! Opens editions automatically when bots enter, change or leave.
//!
//! Each change adds a row to `edition_triggers`. The window of the tournament begins with the first
//! row. At its end an edition opens that includes all changes so far, and replaces a running one.
//! The row of the tournament is locked and checked again, so several coordinators may run this task
//! at the same time. A change that is too late for an edition keeps its row and triggers the next
//! edition.

use std::sync::Arc;
use std::time::Duration;

use arbiter_games::Games;
use arbiter_proto::ids::TournamentId;
use sqlx::{PgConnection, Result};
use time::OffsetDateTime;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};

use super::open_edition::{self, OpenError};
use super::{LifecycleError, PlanMode, Rerun, TournamentFile, lifecycle};
use crate::backoff::Backoff;
use crate::database_clock::Clock;
use crate::db::editions::{self, Edition};
use crate::db::tournaments::{self, Tournament, TournamentState};
use crate::db::{self, edition_triggers, versions};
use crate::keyed_tasks::KeyedTasks;
use crate::queue::{PlanError, Queue};

/// How often the triggers are read.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of editions of different tournaments that are opened at the same time.
const MAX_CONCURRENT: usize = 2;

/// Opens editions. It runs on the leader. Several at the same time are safe
/// ([`crate::leader_election`]).
#[derive(Debug)]
pub struct EditionOpener {
    queue: Queue,
    clock: Clock,
}

/// The result of opening a triggered edition.
#[derive(Debug)]
pub enum OpenOutcome {
    /// An edition was opened.
    Opened(Edition),
    /// The edition of this tournament cannot be opened. The organiser sees the error, and the next
    /// change triggers another attempt.
    Failed(String, OpenError),
}

impl EditionOpener {
    /// Opens editions in this queue, by this clock.
    pub fn new(queue: Queue, clock: Clock) -> Self {
        Self { queue, clock }
    }

    /// Opens due editions without end, and passes each result to `on_outcome`. Cancel safe: an
    /// edition opens as a whole or not at all. Tournaments are handled concurrently. After a
    /// failure a tournament is retried with backoff.
    pub async fn run(&self, mut on_outcome: impl FnMut(Result<OpenOutcome, OpenError>)) {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        let mut openings: KeyedTasks<TournamentId, Result<Option<OpenOutcome>, OpenError>> =
            KeyedTasks::new();
        let mut read_backoff = Backoff::new();
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some((tournament, result)) = openings.join_next() => {
                    match result.unwrap_or(Err(OpenError::Stopped)) {
                        Ok(outcome) => {
                            openings.backoffs.record_success(tournament, Duration::ZERO);
                            if let Some(outcome) = outcome {
                                on_outcome(Ok(outcome));
                            }
                        }
                        Err(error) => {
                            openings.backoffs.record_failure(tournament);
                            on_outcome(Err(error));
                        }
                    }
                    continue;
                }
                _ = ticks.tick() => {}
            }
            let changed = match edition_triggers::tournaments(self.queue.pool()).await {
                Ok(changed) => changed,
                Err(error) => {
                    on_outcome(Err(error.into()));
                    tokio::time::sleep(read_backoff.next()).await;
                    continue;
                }
            };
            read_backoff = Backoff::new();
            for tournament in changed {
                if openings.is_ready(tournament) {
                    let queue = self.queue.clone();
                    let now = self.clock.now();
                    let permit = Arc::clone(&permits).acquire_owned();
                    openings.spawn(tournament, async move {
                        let _permit = permit.await;
                        open_due(&queue, tournament, now).await
                    });
                }
            }
        }
    }

    /// Opens all editions that are due now.
    pub async fn open_all_due(&self) -> Result<Vec<OpenOutcome>, OpenError> {
        let mut outcomes = Vec::new();
        let mut first_error = None;
        for tournament in edition_triggers::tournaments(self.queue.pool()).await? {
            match open_due(&self.queue, tournament, self.clock.now()).await {
                Ok(outcome) => outcomes.extend(outcome),
                // An error does not delay other tournaments.
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if outcomes.is_empty() => Err(error),
            _ => Ok(outcomes),
        }
    }
}

/// When the next edition of a tournament opens automatically, if changes have triggered one.
pub async fn due_at(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
) -> Result<Option<OffsetDateTime>> {
    let Some(first) =
        edition_triggers::of_tournament(&mut *db, tournament.id).await?.first().copied()
    else {
        return Ok(None);
    };
    let has_editions = editions::newest_id(&mut *db, tournament.id).await?.is_some();
    let file = TournamentFile::from_json(games, &tournament.settings);
    Ok(match file {
        _ if !has_editions || tournament.state != TournamentState::Open => None,
        // An organiser opens the editions, unless the running edition can never complete.
        Ok(file) if file.rerun == Rerun::Manual || tournament.rehearsal.is_some() => {
            let is_stuck = editions::is_blocked_by_suspension(&mut *db, tournament.id).await?;
            is_stuck.then_some(first.at)
        }
        Ok(file) => Some(first.at + window(&file)),
        // The attempt to open the edition reports the error.
        Err(_) => Some(first.at),
    })
}

/// Opens an edition of a tournament if one is due at this time.
pub async fn open_due(
    queue: &Queue,
    tournament: TournamentId,
    now: OffsetDateTime,
) -> Result<Option<OpenOutcome>, OpenError> {
    let queue = queue.clone();
    let runtime = Handle::current();
    let work = move || runtime.block_on(open_due_here(&queue, tournament, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn open_due_here(
    queue: &Queue,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Option<OpenOutcome>, OpenError> {
    // Most checks find that no edition is due. They must not lock anything.
    let mut connection = queue.pool().acquire().await?;
    let Some(tournament) = tournaments::get(&mut *connection, id).await? else { return Ok(None) };
    if due_at(&mut connection, queue.games(), &tournament).await?.is_none_or(|due| now < due) {
        return Ok(None);
    }
    drop(connection);
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::mark_opening(&mut *db).await?;
    db::lift_time_limits(&mut *db).await?;
    let tournament = match lifecycle::lock_open(db, id).await {
        Ok(tournament) => tournament,
        Err(LifecycleError::Database(error)) => return Err(error.into()),
        // The tournament ended after the first check.
        Err(_) => return Ok(None),
    };
    let changes = edition_triggers::of_tournament(&mut *db, id).await?;
    if due_at(&mut *db, queue.games(), &tournament).await?.is_none_or(|due| now < due) {
        // Another coordinator has opened an edition with these changes.
        return Ok(None);
    }
    match open_unless_current(db, queue.games(), &tournament, now).await {
        Ok(edition) => {
            edition_triggers::delete(&mut *db, &changes).await?;
            transaction.commit().await?;
            if let Some(edition) = &edition {
                open_edition::analyze(queue, edition).await;
            }
            Ok(edition.map(OpenOutcome::Opened))
        }
        Err(error) if is_transient(&error) => Err(error),
        Err(error) => {
            transaction.rollback().await?;
            let mut transaction = queue.pool().begin().await?;
            let reason = error.to_string();
            tournaments::set_last_error(&mut *transaction, id, Some(&reason)).await?;
            edition_triggers::delete(&mut *transaction, &changes).await?;
            transaction.commit().await?;
            Ok(Some(OpenOutcome::Failed(tournament.name, error)))
        }
    }
}

/// Opens an edition, unless the current one already has all the newest versions and the game
/// package of the tournament. The current edition is the running one, or else the official one.
async fn open_unless_current(
    db: &mut PgConnection,
    games: &Games,
    tournament: &Tournament,
    now: OffsetDateTime,
) -> Result<Option<Edition>, OpenError> {
    let running = editions::running(&mut *db, tournament.id).await?;
    let current = match &running {
        Some(edition) => Some(edition.clone()),
        None => official_edition(db, tournament.id).await?,
    };
    if let Some(current) = current {
        let entrants = editions::entrants(&mut *db, current.id).await?;
        let newest = versions::newest(&mut *db, tournament.id).await?;
        let entrant_versions = entrants.iter().map(|entrant| entrant.version);
        if entrant_versions.eq(newest.iter().map(|version| version.id))
            && has_package_of(games, tournament, &current)
            && !editions::counts_void_result(&mut *db, current.id).await?
        {
            return Ok(None);
        }
    }
    open_edition::open_locked(db, games, tournament, running.as_ref(), PlanMode::Incremental, now)
        .await
        .map(Some)
}

/// Whether an edition is played with the game package of its tournament, if it has one.
fn has_package_of(games: &Games, tournament: &Tournament, edition: &Edition) -> bool {
    let game = tournament.game(games);
    // The attempt to open an edition reports an error of the game.
    game.is_ok_and(|game| game.package.is_none() || game.rules_identity() == edition.rules)
}

async fn official_edition(
    db: &mut PgConnection,
    tournament: TournamentId,
) -> Result<Option<Edition>> {
    let Some(official) = editions::official(&mut *db, tournament).await? else { return Ok(None) };
    editions::get(&mut *db, official).await
}

/// The time from the first change to the opening.
pub(crate) fn window(file: &TournamentFile) -> time::Duration {
    time::Duration::milliseconds(file.submissions.window.floor_millis())
}

/// Whether a later attempt may succeed, as after a full disk.
fn is_transient(error: &OpenError) -> bool {
    match error {
        OpenError::Database(cause)
        | OpenError::State(LifecycleError::Database(cause))
        | OpenError::Plan(PlanError::Database(cause)) => !db::is_invalid_data(cause),
        OpenError::Stopped => true,
        _ => false,
    }
}
