//! Frozen leaderboards: since a moment that the tournament file names, whoever is no organiser sees
//! of the leaderboards and of single matches what there was at that moment, until the tournament is
//! over.
//!
//! What an edition came to is shown if it ended by then. How far later ones are is no secret, and
//! neither is to an owner how its own bots forfeited: that is to be mended while there is time.

use arbiter_proto::ids::EditionId;
use arbiter_proto::v1::MatchStatus;
use time::OffsetDateTime;

use super::{Caller, Result, Service, ServiceError, moment};
use crate::db::editions::{self, Edition};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::tournament::file::Submissions;

/// What somebody may see of a tournament.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// The tournament's name.
    name: String,
    /// The moment after which nothing is shown; none if all is.
    pub(super) frozen: Option<OffsetDateTime>,
}

impl Sight {
    /// Whether it is shown what an edition came to, or how it stands.
    pub(super) fn shows(&self, edition: &Edition) -> bool {
        let by = |at: OffsetDateTime| edition.ended_at.is_some_and(|ended| ended <= at);
        self.frozen.is_none_or(by)
    }

    /// Why something is not shown.
    pub(super) fn refusal(&self) -> ServiceError {
        let since = self.frozen.map(moment).unwrap_or_default();
        ServiceError::permission_denied(format!(
            "the leaderboards of {} are frozen since {since}; what came later is shown to \
             organisers, and to all when it is closed",
            self.name
        ))
    }

    /// Refuses what an edition came to, unless it is shown.
    pub(super) fn ask(&self, edition: &Edition) -> Result<()> {
        if self.shows(edition) { Ok(()) } else { Err(self.refusal()) }
    }
}

impl Service {
    /// What somebody may see of a tournament.
    pub(super) fn sight(&self, tournament: &Tournament, caller: &Caller) -> Result<Sight> {
        let submissions = submissions(tournament)?;
        let freeze = submissions.freeze.map(|freeze| freeze.0);
        let holds = tournament.state == TournamentState::Open && !caller.organises();
        let frozen = freeze.filter(|at| holds && *at <= self.now());
        Ok(Sight { name: tournament.name.clone(), frozen })
    }

    /// The edition whose leaderboard is the official one for somebody who sees so much.
    pub(super) async fn official(
        &self,
        tournament: &Tournament,
        sight: &Sight,
    ) -> Result<Option<EditionId>> {
        Ok(match sight.frozen {
            None => editions::official(&self.pool, tournament.id).await?,
            Some(at) => editions::official_at(&self.pool, tournament.id, at).await?,
        })
    }
}

/// The rules of entry of a tournament.
pub(super) fn submissions(tournament: &Tournament) -> Result<Submissions> {
    Submissions::stored(&tournament.settings).map_err(|error| {
        tracing::error!(tournament = tournament.name, %error, "settings cannot be read");
        ServiceError::internal("the settings of the tournament cannot be read; the log says why")
    })
}

/// Takes out of a match what it came to: where it stands remains, and who sits there.
pub(super) fn veil(status: &mut MatchStatus) {
    // The chips of an episode are what its rounds before came to.
    status.params.clear();
    status.transcript.clear();
    status.level.clear();
    status.wall_ms = 0;
    for seat in &mut status.seats {
        seat.score.clear();
        seat.bad_answers = 0;
        // What is somebody's own has its evidence by now.
        if seat.evidence.is_none() {
            seat.forfeit.clear();
        }
    }
}
