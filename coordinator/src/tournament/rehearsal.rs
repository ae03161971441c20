//! Rehearsals: the bots of a tournament play its schedule once, before the final.
//!
//! A rehearsal is a separate tournament. It has the settings of the original, another seed, and
//! copies of the bots that would play now. So its results are separate from those of the original,
//! and no match is shared. Its leaderboard is never official, and no other bot can enter it. What
//! happens to a copy, such as a suspension, has no effect on the original bot.
//!
//! Its creation and the opening of its edition are one transaction, so a rehearsal exists with its
//! matches or not at all.

use arbiter_games::Games;
use arbiter_proto::ids::{TokenId, TournamentId};
use serde_json::json;
use sqlx::{Error, PgConnection};
use time::OffsetDateTime;
use tokio::runtime::Handle;

use super::entry_outlook::have_entered;
use super::file::Moment;
use super::lifecycle::{self, CreateError};
use super::open_edition::{self, OpenError, read_settings};
use super::{PlanMode, Rerun, TournamentFile};
use crate::db::tournaments::{self, Presentation, Tournament};
use crate::db::{self, audit_log, bots, packages, versions};
use crate::queue::Queue;

/// The largest number in the name of a rehearsal.
const MAX_NUMBER: u32 = 100;
/// Maximum length of a tournament's name.
const MAX_NAME: usize = 64;
/// Maximum length of a title, in characters.
const MAX_TITLE: usize = 100;

/// Why there is no rehearsal.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// It is a rehearsal itself.
    #[error(
        "the tournament {name} is a rehearsal; rehearse {original} again: arbiter tournament start \
         {original} --rehearse"
    )]
    IsRehearsal {
        /// The rehearsal.
        name: String,
        /// The tournament that it rehearses.
        original: String,
    },
    /// Too few bots would play.
    #[error("a rehearsal of {name} needs at least {least} bots, and {}",
        have_entered(*.entered))]
    TooFewBots {
        /// The tournament.
        name: String,
        /// The bots that an edition needs.
        least: usize,
        /// The bots that would play now.
        entered: usize,
    },
    /// All names are taken.
    #[error(
        "no name is free for a rehearsal of {original}: there are tournaments with all names up to \
         {last}; drop one: arbiter tournament cancel {last}, then arbiter tournament drop {last}"
    )]
    NoName {
        /// The tournament.
        original: String,
        /// The last name that a rehearsal of it can have.
        last: String,
    },
    /// The rehearsal cannot be created.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// Its edition cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database failed.
    #[error("cannot create the rehearsal: {0}")]
    Database(#[from] Error),
}

/// Creates a rehearsal of a tournament and starts its edition. `token` is that of the request, for
/// the audit log. Continues if the client disconnects.
///
/// # Errors
/// If the tournament is over or a rehearsal, or its schedule is impossible with the present bots.
pub async fn start(
    queue: &Queue,
    original: TournamentId,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<Tournament, RehearsalError> {
    let queue = queue.clone();
    let runtime = Handle::current();
    let work = move || runtime.block_on(start_here(&queue, original, token, now));
    tokio::task::spawn_blocking(work).await.map_err(|_| OpenError::Stopped)?
}

async fn start_here(
    queue: &Queue,
    original: TournamentId,
    token: TokenId,
    now: OffsetDateTime,
) -> Result<Tournament, RehearsalError> {
    let mut transaction = queue.pool().begin().await?;
    let db = &mut *transaction;
    db::lift_time_limits(&mut *db).await?;
    let original = lifecycle::lock_open(db, original).await.map_err(OpenError::from)?;
    let rehearsal = create(db, queue.games(), &original, now).await?;
    let mode = PlanMode::Fresh;
    let edition = open_edition::open_locked(db, queue.games(), &rehearsal, None, mode, now).await?;
    let detail = json!({
        "before": null,
        "after": {"rehearsal": rehearsal.name, "edition": open_edition::audit_state(&edition)},
    });
    let action = "tournament rehearse";
    audit_log::write(&mut *db, Some(token), action, &original.name, Some(&detail), now).await?;
    transaction.commit().await?;
    open_edition::analyze(queue, &edition).await;
    Ok(rehearsal)
}

/// Creates the rehearsal of a locked tournament, with copies of the bots that would play now.
async fn create(
    db: &mut PgConnection,
    games: &Games,
    original: &Tournament,
    now: OffsetDateTime,
) -> Result<Tournament, RehearsalError> {
    let name = original.name.clone();
    if let Some(rehearsal) = &original.rehearsal {
        return Err(RehearsalError::IsRehearsal { name, original: rehearsal.original.clone() });
    }
    let file = read_settings(games, original)?;
    let newest = versions::newest(&mut *db, original.id).await?;
    let least = file.schedule.min_bots();
    if newest.len() < least {
        return Err(RehearsalError::TooFewBots { name, least, entered: newest.len() });
    }
    let rehearsal_name = free_name(&mut *db, &name).await?;
    let file = rehearsal_file(file, original, rehearsal_name, now);
    let created = lifecycle::create_rehearsal(&mut *db, &file, &name, now).await?;
    if let Some(package) = &file.package {
        packages::add(&mut *db, created.id, package.bundle.0.as_bytes()).await?;
    }
    let ids: Vec<_> = newest.iter().map(|version| version.id).collect();
    bots::copy(&mut *db, &ids, created.id).await?;
    Ok(tournaments::get(db, created.id).await?.ok_or(Error::RowNotFound)?)
}

/// The first free name of a rehearsal.
async fn free_name(db: &mut PgConnection, original: &str) -> Result<String, RehearsalError> {
    for number in 1..=MAX_NUMBER {
        let name = numbered_name(original, number);
        if tournaments::find(&mut *db, &name).await?.is_none() {
            return Ok(name);
        }
    }
    let last = numbered_name(original, MAX_NUMBER);
    Err(RehearsalError::NoName { original: original.to_owned(), last })
}

/// `cup-rehearsal-1`. A long name of the original is cut.
fn numbered_name(original: &str, number: u32) -> String {
    let suffix = format!("-rehearsal-{number}");
    let kept: String = original.chars().take(MAX_NAME - suffix.len()).collect();
    format!("{kept}{suffix}")
}

/// The file of a rehearsal: the same matches with another seed, and no entry.
fn rehearsal_file(
    mut file: TournamentFile,
    original: &Tournament,
    name: String,
    now: OffsetDateTime,
) -> TournamentFile {
    let Presentation { title, replays, .. } = &original.presentation;
    let title = format!("Rehearsal of {}", title.as_ref().unwrap_or(&original.name));
    let title: String = title.chars().take(MAX_TITLE).collect();
    let presentation = Presentation { title: Some(title), description: None, replays: *replays };
    // People write times in whole seconds.
    let second = now.replace_nanosecond(0).expect("each second begins with nanosecond 0");
    file.submissions.closes = Some(Moment(second));
    TournamentFile { name, presentation, seed: None, beacon: None, rerun: Rerun::Manual, ..file }
}
