//! Frozen leaderboards. A tournament file may name a freeze time. From then until the tournament is
//! over, only organisers see newer leaderboards and match results.
//!
//! Results of an edition are visible if the edition ended before the freeze. The progress of later
//! editions stays visible. Owners still see how their bots forfeited, so that they can correct the
//! bots in time.
//!
//! Editions share matches. So a result is visible if an edition with the match ended before the
//! freeze, and the match had been played by then: a match of a cancelled edition may be played
//! later, for another one.
//!
//! Where later rounds depend on results, a match also shows who won the rounds before. So in such a
//! tournament who plays in a match is visible only with its result. Owners still see who plays
//! against their bots.

use std::collections::HashSet;
use std::fmt::Display;

use arbiter_proto::ids::{EditionId, MatchNumber, TournamentId};
use arbiter_proto::v1::MatchStatus;
use arbiter_schedule::Schedule;
use sqlx::PgExecutor;
use time::OffsetDateTime;

use super::{Caller, Result, Service, ServiceError, format_time};
use crate::db::editions::{self, Edition, EditionState};
use crate::db::played_matches;
use crate::db::tournaments::{self, Tournament, TournamentState};
use crate::tournament::file::{Submissions, TournamentFile};

/// The results of a tournament that a caller may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Visibility {
    /// The tournament's name.
    name: String,
    /// Nothing that happened after this time is visible. None if everything is visible.
    pub(super) frozen: Option<OffsetDateTime>,
}

impl Visibility {
    /// Whether the results and standings of an edition are visible.
    pub(super) fn shows(&self, edition: &Edition) -> bool {
        let has_ended_by = |time: OffsetDateTime| edition.ended_at.is_some_and(|end| end <= time);
        self.frozen.is_none_or(has_ended_by)
    }

    /// The error for results that are not visible.
    pub(super) fn refusal(&self) -> ServiceError {
        let since = self.frozen.map(format_time).unwrap_or_default();
        ServiceError::permission_denied(format!(
            "the leaderboards of {} are frozen since {since}; only organisers see later results \
             until the tournament is over",
            self.name
        ))
    }

    /// Refuses an edition whose results are not visible.
    pub(super) fn require(&self, edition: &Edition) -> Result<()> {
        if self.shows(edition) { Ok(()) } else { Err(self.refusal()) }
    }
}

impl Service {
    /// The results of a tournament that a caller may see.
    pub(super) fn visibility(
        &self,
        tournament: &Tournament,
        caller: &Caller,
    ) -> Result<Visibility> {
        let rules = entry_rules(tournament)?;
        let frozen = frozen_since(tournament, &rules, self.now());
        let frozen = frozen.filter(|_| !caller.is_organiser());
        Ok(Visibility { name: tournament.name.clone(), frozen })
    }

    /// Which of these matches of a tournament have visible results.
    pub(super) async fn visible_results(
        &self,
        visibility: &Visibility,
        tournament: TournamentId,
        numbers: &[MatchNumber],
    ) -> Result<HashSet<MatchNumber>> {
        let Some(at) = visibility.frozen else { return Ok(numbers.iter().copied().collect()) };
        let visible = played_matches::shown_by(&self.pool, tournament, numbers, at).await?;
        Ok(visible.into_iter().collect())
    }

    /// Whether the matches of later rounds show results of earlier rounds.
    pub(super) fn players_show_results(&self, tournament: &Tournament) -> Result<bool> {
        let file = TournamentFile::from_json(self.games(), &tournament.settings);
        let file = file.map_err(|error| unreadable(tournament, &error))?;
        // A gauntlet has one round, which follows from its bots.
        let is_gauntlet = matches!(file.schedule, Schedule::Gauntlet(_));
        Ok(file.schedule.depends_on_results() && !is_gauntlet)
    }

    /// Refuses a visible edition with results that are not visible: those of the matches that were
    /// played after the edition was cancelled.
    pub(super) async fn require_results(&self, edition: &Edition, caller: &Caller) -> Result<()> {
        if edition.state == EditionState::Complete {
            return Ok(());
        }
        let tournament = tournaments::of_edition(&self.pool, edition.id).await?;
        self.require_results_of(&tournament, edition, caller)
    }

    /// Like [`Self::require_results`] for an edition of this tournament.
    pub(super) fn require_results_of(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        caller: &Caller,
    ) -> Result<()> {
        let visibility = self.visibility(tournament, caller)?;
        let are_visible = edition.state == EditionState::Complete || visibility.frozen.is_none();
        if are_visible { Ok(()) } else { Err(visibility.refusal()) }
    }

    /// The newest edition whose leaderboard is official and visible. A rehearsal has none. In a
    /// cancelled tournament it is the edition that was official until then.
    pub(super) async fn official(
        &self,
        db: impl PgExecutor<'_>,
        tournament: &Tournament,
        visibility: &Visibility,
    ) -> Result<Option<EditionId>> {
        if tournament.rehearsal.is_some() {
            return Ok(None);
        }
        Ok(match visibility.frozen {
            None => editions::official(db, tournament.id).await?,
            Some(at) => editions::official_at(db, tournament.id, at).await?,
        })
    }
}

/// The words for a tournament whose leaderboards are frozen now. Empty if they are not, or if its
/// settings cannot be read.
pub(super) fn freeze_notice(tournament: &Tournament, now: OffsetDateTime) -> String {
    let Ok(rules) = entry_rules(tournament) else { return String::new() };
    let Some(since) = frozen_since(tournament, &rules, now) else { return String::new() };
    format!("frozen since {} until the tournament is over", format_time(since))
}

/// Since when the public sees no newer leaderboard. None if leaderboards are not frozen now. Those
/// of a rehearsal are also frozen while those of its original are: the same bots play in both.
fn frozen_since(
    tournament: &Tournament,
    rules: &Submissions,
    now: OffsetDateTime,
) -> Option<OffsetDateTime> {
    let own = rules.freeze.filter(|_| tournament.state == TournamentState::Open);
    let of_original = tournament.rehearsal.as_ref().and_then(|rehearsal| rehearsal.freeze);
    let times = own.map(|freeze| freeze.0).into_iter().chain(of_original);
    times.filter(|time| *time <= now).min()
}

/// The entry rules of a tournament.
pub(super) fn entry_rules(tournament: &Tournament) -> Result<Submissions> {
    Submissions::stored(&tournament.settings).map_err(|error| unreadable(tournament, &error))
}

/// Logs why the settings of a tournament cannot be read.
pub(super) fn unreadable(tournament: &Tournament, error: &dyn Display) -> ServiceError {
    tracing::error!(tournament = tournament.name, %error, "cannot read settings");
    ServiceError::internal("the settings of the tournament cannot be read; the log says why")
}

/// Removes who plays in a match.
pub(super) fn hide_players(status: &mut MatchStatus) {
    status.seats.clear();
    // The same bots have the same key in other editions.
    status.block = None;
}

/// Removes the result of a match. Its state and its bots remain.
pub(super) fn hide_result(status: &mut MatchStatus) {
    // For an episode they contain chips, which show the results of earlier rounds.
    status.params.clear();
    status.transcript.clear();
    status.level.clear();
    status.wall_ms = 0;
    status.reported_us = None;
    for seat in &mut status.seats {
        seat.score.clear();
        seat.bad_answers = 0;
        // Only the caller's own seats have evidence.
        if seat.evidence.is_none() {
            seat.forfeit.clear();
        }
    }
}
