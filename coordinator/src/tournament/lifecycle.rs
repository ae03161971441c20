//! How tournaments begin and end.

use arbiter_games::Seed;
use arbiter_proto::ids::TournamentId;
use sqlx::{Error, PgConnection, PgPool};
use time::OffsetDateTime;

use super::TournamentFile;
use super::file::Moment;
use crate::access;
use crate::db::editions::{self, EditionState};
use crate::db::tournaments::{self, NewTournament, Tournament, TournamentState};
use crate::db::{deleted_tournaments, is_duplicate, lots};

/// Why a tournament cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Another one has its name.
    #[error("there is a tournament {0} already; choose another name")]
    Taken(String),
    /// The value of its beacon may be known already.
    #[error(
        "entry to {name} closed at {closes}, so the value of its beacon may be known already; write \
         a later [submissions] closes, and name a beacon that is published after it"
    )]
    BeaconIsPast {
        /// The name.
        name: String,
        /// When entry closed.
        closes: Moment,
    },
    /// The machine gives no random numbers.
    #[error("cannot draw a seed: {0}; write one into the tournament file")]
    Chance(#[source] std::io::Error),
    /// The database failed.
    #[error("cannot store the tournament: {0}")]
    Database(#[from] Error),
}

/// Why a tournament is not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is none of this name.
    #[error("there is no tournament {0}; `arbiter tournament list` shows all of them")]
    Unknown(String),
    /// The database failed.
    #[error("cannot look for the tournament: {0}")]
    Database(#[from] Error),
}

/// Why something cannot be done in a tournament as it stands.
#[derive(Debug, thiserror::Error)]
pub enum LifecycleError {
    /// There is none.
    #[error("there is no such tournament")]
    Unknown,
    /// It has ended already.
    #[error("tournament {0} was {how}; make another one", how = ended(*.1))]
    Over(String, TournamentState),
    /// It was never played to an end.
    #[error("no edition of {0} is complete, so there is nothing to close; start it, or cancel it")]
    Unplayed(String),
    /// The value of its beacon is awaited.
    #[error(
        "the value of the beacon of {0} (\"{1}\") is not given; give it with `arbiter \
         tournament beacon {0} VALUE` and wait for the edition that is played with it, or cancel \
         the tournament"
    )]
    BeaconAwaited(String, String),
    /// No edition with the beacon's value is complete.
    #[error(
        "no edition of {0} that is played with the value of its beacon is complete; start one \
         and wait for it, or cancel the tournament"
    )]
    BeaconUnplayed(String),
    /// It goes on, so it cannot be dropped.
    #[error("tournament {0} is open; close or cancel it first, and export it if it is to be kept")]
    Open(String),
    /// It is being played.
    #[error(
        "edition {number} of {name} is still being played; wait for it, or cancel the tournament"
    )]
    Runs {
        /// Its name.
        name: String,
        /// The number of the edition that runs.
        number: i32,
    },
    /// The database failed.
    #[error("cannot change the tournament: {0}")]
    Database(#[from] Error),
}

/// How a tournament ended, as a message says it.
fn ended(state: TournamentState) -> &'static str {
    match state {
        TournamentState::Open => "opened",
        TournamentState::Closed => "closed",
        TournamentState::Cancelled => "cancelled",
    }
}

/// Makes a tournament. Its seed is drawn if the file has none.
///
/// # Errors
/// If its name is taken, or no seed can be drawn.
pub async fn create(
    db: &mut PgConnection,
    file: &TournamentFile,
    now: OffsetDateTime,
) -> Result<Tournament, CreateError> {
    if let (Some(_), Some(closes)) = (&file.beacon, file.submissions.closes)
        && closes.0 <= now
    {
        return Err(CreateError::BeaconIsPast { name: file.name.clone(), closes });
    }
    let seed = match file.seed {
        Some(seed) => seed,
        None => access::draw().map(Seed).map_err(CreateError::Chance)?,
    };
    let new = NewTournament {
        name: &file.name,
        game: file.game().as_str(),
        settings: &file.to_json(),
        seed,
        seed_hash: *blake3::hash(&seed.0).as_bytes(),
        beacon: file.beacon.as_deref(),
    };
    let id = tournaments::create(&mut *db, &new, now).await.map_err(|error| {
        let name = file.name.clone();
        if is_duplicate(&error) { CreateError::Taken(name) } else { error.into() }
    })?;
    Ok(tournaments::get(db, id).await?.ok_or(Error::RowNotFound)?)
}

/// The tournament of this name.
pub async fn find(pool: &PgPool, name: &str) -> Result<Tournament, FindError> {
    let found = tournaments::find(pool, name).await?;
    found.ok_or_else(|| FindError::Unknown(name.to_owned()))
}

/// Gives a tournament up, and the edition that runs, in a transaction of the caller's.
///
/// # Errors
/// If it has ended already.
pub async fn cancel(
    db: &mut PgConnection,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    open(&mut *db, id).await?;
    for edition in editions::of_tournament(&mut *db, id).await? {
        editions::cancel(&mut *db, edition.id, now).await?;
        // What is still being played of an edition that was replaced is of no use any more, either.
        if edition.state != EditionState::Complete {
            lots::cancel(&mut *db, edition.id).await?;
        }
    }
    end(db, id, TournamentState::Cancelled, now).await
}

/// Ends a tournament that is played to its end, in a transaction of the caller's: from now on its
/// seed may be shown.
///
/// # Errors
/// If it has ended already, or an edition runs, or none is complete.
pub async fn close(
    db: &mut PgConnection,
    id: TournamentId,
    now: OffsetDateTime,
) -> Result<Tournament, LifecycleError> {
    let tournament = open(&mut *db, id).await?;
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

/// Drops a tournament that has ended, in a transaction of the caller's: from then on it is not there
/// any more. What it leaves is cleared away later.
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

/// Locks a tournament that has not ended.
pub(crate) async fn open(
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
