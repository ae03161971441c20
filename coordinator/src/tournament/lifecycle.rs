//! Creates, closes, cancels and deletes tournaments.

use arbiter_games::Seed;
use arbiter_proto::ids::TournamentId;
use sqlx::{Error, PgConnection};
use time::OffsetDateTime;

use super::TournamentFile;
use super::file::Moment;
use crate::access;
use crate::db::editions::{self, EditionState};
use crate::db::tournaments::{self, NewTournament, Tournament, TournamentState};
use crate::db::{deleted_tournaments, is_duplicate, lots};

/// Why a tournament cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Another tournament has the same name.
    #[error("a tournament {0} exists already; choose another name")]
    Taken(String),
    /// Entry has closed, so the value of the beacon may already be known.
    #[error(
        "entry to {name} closed at {closes}, so the value of its beacon may already be known; write \
         a later [submissions] closes, and name a beacon that is published after it"
    )]
    BeaconIsPast {
        /// The name of the tournament.
        name: String,
        /// When entry closed.
        closes: Moment,
    },
    /// The operating system provides no random numbers.
    #[error("cannot draw a seed: {0}; write one into the tournament file")]
    NoRandomNumbers(#[source] std::io::Error),
    /// The database failed.
    #[error("cannot store the tournament: {0}")]
    Database(#[from] Error),
}

/// Why a tournament does not allow a change in its present state.
#[derive(Debug, thiserror::Error)]
pub enum LifecycleError {
    /// There is no such tournament.
    #[error("there is no such tournament")]
    Unknown,
    /// The tournament has already ended.
    #[error("tournament {0} was {how}; create another one", how = how_it_ended(*.1))]
    Over(String, TournamentState),
    /// No edition of the tournament is complete.
    #[error(
        "no edition of {0} is complete, so it cannot be closed; start an edition, or cancel {0}"
    )]
    Unplayed(String),
    /// The beacon has no value yet.
    #[error(
        "the beacon of {0} (\"{1}\") has no value yet; enter it with `arbiter tournament beacon {0} \
         VALUE` and wait for the edition that uses it, or cancel the tournament"
    )]
    BeaconAwaited(String, String),
    /// No edition with the beacon's value is complete.
    #[error(
        "no edition of {0} that uses the value of its beacon is complete; start one and wait for \
         it, or cancel the tournament"
    )]
    BeaconUnplayed(String),
    /// The tournament is open, so it cannot be deleted.
    #[error("tournament {0} is open; close or cancel it first, and export it if you need its data")]
    Open(String),
    /// An edition of the tournament is running.
    #[error("edition {number} of {name} is still running; wait for it, or cancel the tournament")]
    Runs {
        /// The name of the tournament.
        name: String,
        /// The number of the running edition.
        number: i32,
    },
    /// The database failed.
    #[error("cannot change the tournament: {0}")]
    Database(#[from] Error),
}

/// How a tournament ended, for messages.
fn how_it_ended(state: TournamentState) -> &'static str {
    match state {
        TournamentState::Open => "opened",
        TournamentState::Closed => "closed",
        TournamentState::Cancelled => "cancelled",
    }
}

/// Creates a tournament. If the file has no seed, one is drawn.
pub async fn create(
    db: &mut PgConnection,
    file: &TournamentFile,
    now: OffsetDateTime,
) -> Result<Tournament, CreateError> {
    store(db, file, None, now).await
}

/// Creates the rehearsal of the tournament `original`.
pub async fn create_rehearsal(
    db: &mut PgConnection,
    file: &TournamentFile,
    original: &str,
    now: OffsetDateTime,
) -> Result<Tournament, CreateError> {
    store(db, file, Some(original), now).await
}

async fn store(
    db: &mut PgConnection,
    file: &TournamentFile,
    rehearsal_of: Option<&str>,
    now: OffsetDateTime,
) -> Result<Tournament, CreateError> {
    if let (Some(_), Some(closes)) = (&file.beacon, file.submissions.closes)
        && closes.0 <= now
    {
        return Err(CreateError::BeaconIsPast { name: file.name.clone(), closes });
    }
    let seed = match file.seed {
        Some(seed) => seed,
        None => access::draw().map(Seed).map_err(CreateError::NoRandomNumbers)?,
    };
    let new = NewTournament {
        name: &file.name,
        game: file.game().as_str(),
        settings: &file.to_json(),
        seed,
        seed_hash: *blake3::hash(&seed.0).as_bytes(),
        beacon: file.beacon.as_deref(),
        presentation: &file.presentation,
        rehearsal_of,
    };
    let id = tournaments::create(&mut *db, &new, now).await.map_err(|error| {
        let name = file.name.clone();
        if is_duplicate(&error) { CreateError::Taken(name) } else { error.into() }
    })?;
    Ok(tournaments::get(db, id).await?.ok_or(Error::RowNotFound)?)
}

/// Cancels a tournament and its running edition, in the caller's transaction.
pub async fn cancel(
    db: &mut PgConnection,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    lock_open(&mut *db, id).await?;
    for edition in editions::of_tournament(&mut *db, id).await? {
        editions::cancel(&mut *db, edition.id, now).await?;
    }
    lots::cancel(&mut *db, id).await?;
    end(db, id, TournamentState::Cancelled, now).await
}

/// Closes a tournament, in the caller's transaction. Its seed becomes public.
///
/// # Errors
/// If it has ended, an edition runs, or no edition is complete.
pub async fn close(
    db: &mut PgConnection,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let tournament = lock_open(&mut *db, id).await?;
    let name = tournament.name.clone();
    let editions = editions::of_tournament(&mut *db, id).await?;
    if let Some(running) = editions.iter().find(|edition| edition.state == EditionState::Running) {
        return Err(LifecycleError::Runs { name, number: running.number });
    }
    let mut complete = editions.iter().filter(|edition| edition.state == EditionState::Complete);
    let Some(official) = complete.next() else { return Err(LifecycleError::Unplayed(name)) };
    if let Some(beacon) = &tournament.beacon {
        let Some(value) = &beacon.value else {
            let beacon = beacon.name.clone();
            return Err(LifecycleError::BeaconAwaited(name, beacon));
        };
        if official.number < value.first_edition {
            return Err(LifecycleError::BeaconUnplayed(name));
        }
    }
    end(db, id, TournamentState::Closed, now).await
}

/// Deletes a tournament that has ended, in the caller's transaction. Its data are removed later.
pub(crate) async fn delete(
    db: &mut PgConnection,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let tournament = tournaments::lock(&mut *db, id).await?.ok_or(LifecycleError::Unknown)?;
    if tournament.state == TournamentState::Open {
        return Err(LifecycleError::Open(tournament.name));
    }
    deleted_tournaments::add(db, id, now).await?;
    Ok(tournament)
}

/// Locks a tournament that is open.
pub(crate) async fn lock_open(
    db: &mut PgConnection,
    id: TournamentId,
) -> Result<Tournament, LifecycleError> {
    let tournament = tournaments::lock(db, id).await?.ok_or(LifecycleError::Unknown)?;
    match tournament.state {
        TournamentState::Open => Ok(tournament),
        state => Err(LifecycleError::Over(tournament.name, state)),
    }
}

async fn end(
    db: &mut PgConnection,
    id: TournamentId,
    state: TournamentState,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    tournaments::end(&mut *db, id, state, now).await?;
    tournaments::get(db, id).await?.ok_or(LifecycleError::Unknown)
}
