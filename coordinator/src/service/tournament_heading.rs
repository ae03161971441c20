//! What every page of a tournament shows above its content: its title, its state, and whether its
//! leaderboards are frozen.

use arbiter_schedule::Schedule;
use serde::Deserialize as _;
use serde_json::Value;
use time::OffsetDateTime;

use super::entry_state::EntryState;
use super::leaderboard_freeze::{entry_rules, unreadable};
use super::{Caller, Result, Service};
use crate::db::tournaments::{Rehearsal, Tournament, TournamentState};
use crate::tournament::file::TournamentFile;

/// The heading of a tournament.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TournamentHeading {
    /// Its name, as in commands.
    pub(crate) name: String,
    /// Its title for people: its name if the file has no title.
    pub(crate) title: String,
    pub(crate) state: TournamentState,
    /// What a mean score is per: `match`, or `episode` in games with episodes.
    pub(crate) unit: &'static str,
    /// The page of its rounds, in schedules with rounds.
    pub(crate) rounds: Option<RoundsView>,
    /// Since when its leaderboards are frozen for the public. None if they are not frozen now.
    pub(crate) frozen_since: Option<OffsetDateTime>,
    /// When its leaderboards will freeze. None if they are frozen now, or if this is not planned.
    pub(crate) freezes_at: Option<OffsetDateTime>,
    /// Whether bots can enter.
    pub(crate) entry: EntryState,
    /// What it rehearses, if it is a rehearsal.
    pub(crate) rehearsal: Option<Rehearsal>,
}

/// How the rounds of a schedule are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundsView {
    /// A knockout has a bracket.
    Bracket,
    /// Other schedules have standings and pairings of each round.
    Rounds,
}

/// The schedule in the settings of a tournament, if this release can read it.
pub(crate) fn schedule_in(settings: &Value) -> Option<Schedule> {
    Schedule::deserialize(&settings["schedule"]).ok()
}

/// What a mean score with this schedule is per: a match, or an episode.
pub(crate) fn unit_of(schedule: Option<&Schedule>) -> &'static str {
    match schedule {
        Some(Schedule::Episodes(_)) => "episode",
        _ => "match",
    }
}

impl Service {
    /// The heading of the tournament with this name.
    pub(crate) async fn tournament_heading(&self, name: &str) -> Result<TournamentHeading> {
        self.heading_of(&self.tournament(name).await?)
    }

    pub(super) fn heading_of(&self, tournament: &Tournament) -> Result<TournamentHeading> {
        let title = tournament.presentation.title.as_ref().unwrap_or(&tournament.name);
        // The public's view, since organisers want to know what the public sees.
        let frozen_since = self.visibility(tournament, &Caller::Anonymous)?.frozen;
        let freeze = entry_rules(tournament)?.freeze.map(|freeze| freeze.0);
        let is_open = tournament.state == TournamentState::Open;
        let schedule = schedule_in(&tournament.settings);
        Ok(TournamentHeading {
            name: tournament.name.clone(),
            title: title.clone(),
            state: tournament.state,
            unit: unit_of(schedule.as_ref()),
            rounds: schedule.as_ref().and_then(rounds_view),
            frozen_since,
            freezes_at: freeze.filter(|at| is_open && *at > self.now()),
            entry: self.entry_state(tournament)?,
            rehearsal: tournament.rehearsal.clone(),
        })
    }
}

impl Service {
    /// The settings of the tournament with this name.
    pub(crate) async fn tournament_file(&self, name: &str) -> Result<TournamentFile> {
        let tournament = self.tournament(name).await?;
        let file = TournamentFile::stored(self.games(), &tournament);
        file.map_err(|error| unreadable(&tournament, &error))
    }
}

/// The view of the rounds of a tournament with this schedule.
fn rounds_view(schedule: &Schedule) -> Option<RoundsView> {
    match schedule {
        Schedule::Knockout(_) => Some(RoundsView::Bracket),
        Schedule::Swiss(_) | Schedule::Gauntlet(_) | Schedule::Ladder(_) | Schedule::Stages(_) => {
            Some(RoundsView::Rounds)
        }
        Schedule::RoundRobin(_)
        | Schedule::Foursomes(_)
        | Schedule::Tables(_)
        | Schedule::Solo(_)
        | Schedule::Episodes(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn means_are_per_episode_in_games_with_episodes() {
        for (schedule, unit) in [
            (json!({ "kind": "episodes", "episodes": 5 }), "episode"),
            (json!({ "kind": "round_robin" }), "match"),
        ] {
            let read = schedule_in(&json!({ "schedule": schedule }));
            assert!(read.is_some());
            assert_eq!(unit_of(read.as_ref()), unit);
        }
    }
}
