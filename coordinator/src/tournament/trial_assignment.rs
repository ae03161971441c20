//! What a worker is told of a version that it is to try.

use arbiter_games::{Games, Seed};
use arbiter_proto::assignment::SeatAssignment;
use arbiter_proto::convert::Meaningless;
use arbiter_proto::ids::{Lease, VersionId};
use arbiter_proto::trace::{self, Span};
use serde_json::json;
use sqlx::{Error, PgPool};

use super::lot_assignment::seat;
use super::{FileError, TournamentFile};
use crate::db::entrants::Named;
use crate::db::{bots, tournaments, trace_contexts};

/// House bots that a version is tried against, at most: those that were submitted first.
const OPPONENTS: usize = 4;

/// Why a trial cannot be handed out.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The database failed.
    #[error("cannot read what version {0} is: {1}")]
    Database(VersionId, #[source] Error),
    /// The file of the tournament was stored by another program.
    #[error("cannot read the settings for version {0}: {1}")]
    Settings(VersionId, #[source] FileError),
    /// A row of the version or of an opponent is broken.
    #[error("cannot read what version {0} is tried with: {1}")]
    Seat(VersionId, #[source] Meaningless),
}

/// A trial that is handed out.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialAssignment {
    /// Its lease.
    pub lease: Lease,
    /// The game.
    pub game: String,
    /// [`arbiter_proto::settings::Settings`] of its matches, as JSON.
    pub settings: String,
    /// Its seed.
    pub seed: Seed,
    /// The version that is tried.
    pub subject: SeatAssignment,
    /// House bots to play against.
    pub opponents: Vec<SeatAssignment>,
    /// How long the lease lasts from now, in milliseconds.
    pub lease_ms: i64,
    /// Where its trace goes on; empty if it has none.
    pub trace: String,
}

/// What a worker is told of the trial of a version, whose lease holds for so many milliseconds
/// from now.
pub async fn assignment(
    pool: &PgPool,
    games: &Games,
    lease: Lease,
    version: VersionId,
    lease_ms: i64,
) -> Result<TrialAssignment, TrialError> {
    let failed = |cause| TrialError::Database(version, cause);
    let broken = |cause| TrialError::Seat(version, cause);
    let subject = Named::of_version(pool, version).await.map_err(failed)?;
    let tournament = bots::tournament_of(pool, version).await.map_err(failed)?;
    let tournament = tournament.ok_or_else(|| failed(Error::RowNotFound))?;
    let tournament = tournaments::get(pool, tournament).await.map_err(failed)?;
    let tournament = tournament.ok_or_else(|| failed(Error::RowNotFound))?;
    let file = TournamentFile::from_json(games, &tournament.settings)
        .map_err(|cause| TrialError::Settings(version, cause))?;
    let mut settings = file.settings();
    if let Some(board) = file.boards.first() {
        settings.params.insert(file.board_key().to_owned(), json!(board));
    }
    let house = Named::of_house(pool, tournament.id).await.map_err(failed)?;
    let opponents = house.iter().filter(|named| named.bot != subject.bot).take(OPPONENTS);
    let mut span = Span::NONE;
    if trace::is_on() {
        let parent = trace_contexts::of_version(pool, version).await.map_err(failed)?;
        span = Span::follow("trial leased", parent.as_ref());
        span.set("version", i64::from(version.0));
    }
    Ok(TrialAssignment {
        lease,
        game: tournament.game,
        settings: json!(settings).to_string(),
        seed: tournament.seed.derive(&format!("trial/{version}")),
        subject: SeatAssignment::new(&subject.name, &subject.digest, &[]).map_err(broken)?,
        opponents: opponents.map(seat).collect::<Result<_, _>>().map_err(broken)?,
        lease_ms,
        trace: span.carried(),
    })
}
