//! The assignment of a trial to a worker.

use std::fmt::Display;

use arbiter_games::Games;
use arbiter_proto::assignment::SeatAssignment;
use arbiter_proto::convert::InvalidField;
use arbiter_proto::ids::{Lease, VersionId};
use arbiter_proto::trace::{self, Span};
use arbiter_proto::v1;
use serde_json::json;
use sqlx::{Error, PgPool};

use super::TournamentFile;
use super::lot_assignment::{AssignmentError, seat};
use crate::db::entrants::EntrantInfo;
use crate::db::trace_contexts::{self, Subject};
use crate::db::{bots, tournaments};

/// Maximum number of house bots that play against a version in its trial. The first submitted ones
/// are used.
const MAX_OPPONENTS: usize = 4;

/// The message that assigns a version's trial to a worker. The lease ends `lease_ms` milliseconds
/// from now.
pub async fn assignment(
    pool: &PgPool,
    games: &Games,
    lease: Lease,
    version: VersionId,
    lease_ms: i64,
) -> Result<v1::Trial, AssignmentError> {
    let invalid = |what: &str, cause: &dyn Display| {
        AssignmentError::InvalidData(format!("cannot read {what} of version {version}: {cause}"))
    };
    let seat_error = |cause: InvalidField| invalid("the bots of the trial", &cause);
    let subject = EntrantInfo::of_version(pool, version).await?;
    let id = bots::tournament_of(pool, version).await?.ok_or(Error::RowNotFound)?;
    let tournament = tournaments::get(pool, id).await?.ok_or(Error::RowNotFound)?;
    let file = TournamentFile::from_json(games, &tournament.settings)
        .map_err(|cause| invalid("the settings", &cause))?;
    let mut settings = file.settings();
    if let Some(board) = file.boards.first() {
        settings.params.insert(file.board_key().to_owned(), json!(board));
    }
    let house = EntrantInfo::of_house(pool, tournament.id).await?;
    let opponents = house.iter().filter(|named| named.bot != subject.bot).take(MAX_OPPONENTS);
    let mut span = Span::NONE;
    if trace::is_enabled() {
        let parent = trace_contexts::find(pool, Subject::Version(version)).await?;
        span = Span::follow("trial leased", parent.as_ref());
        span.set("version", i64::from(version.0));
    }
    let seed = tournament.seed.derive(&format!("trial/{version}"));
    let subject = SeatAssignment::new(&subject.name, &subject.digest, &[]).map_err(seat_error)?;
    let seats = file.schedule.table_seats().unwrap_or(*file.params.seats().end());
    let seats = u32::try_from(seats).map_err(|cause| invalid("the seats", &cause))?;
    let opponents = opponents.map(|named| seat(named).map(Into::into));
    Ok(v1::Trial {
        lease: Some(lease.into()),
        game: tournament.game,
        settings: json!(settings).to_string(),
        seed: seed.0.to_vec(),
        subject: Some(subject.into()),
        opponents: opponents.collect::<Result<_, _>>().map_err(seat_error)?,
        lease_ms,
        seats,
        trace: span.to_message(),
    })
}
