//! In which edition a submitted version plays, and when, for its author.

use arbiter_proto::v1::EntryForecast;
use sqlx::PgConnection;
use time::OffsetDateTime;

use super::{Result, Service, micros};
use crate::db::bot_list::{self, TriedVersion};
use crate::db::editions::{Edition, EditionState};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::trials::TrialState;
use crate::db::{bots, editions, lots, versions};
use crate::tournament::{Rerun, TournamentFile, auto_edition};

impl Service {
    /// In which edition a version plays. `None` if it plays in none, or if this cannot be found
    /// out: the version is stored all the same.
    pub(super) async fn entry_forecast(
        &self,
        tournament: &Tournament,
        bot: &bots::Bot,
        row: &TriedVersion,
    ) -> Option<EntryForecast> {
        let forecast = self.find_entry(tournament, bot, row).await;
        let forecast = forecast.inspect_err(|error| {
            let error = error.message();
            tracing::debug!(tournament = tournament.name, error, "cannot foresee an entry");
        });
        forecast.ok().flatten()
    }

    async fn find_entry(
        &self,
        tournament: &Tournament,
        bot: &bots::Bot,
        row: &TriedVersion,
    ) -> Result<Option<EntryForecast>> {
        let TriedVersion { version, state, .. } = row;
        let after_trial = match state {
            TrialState::Passed => false,
            TrialState::Waiting | TrialState::Leased => true,
            TrialState::Failed | TrialState::Aside => return Ok(None),
        };
        let mut db = self.pool.acquire().await?;
        let submitted_at = version.submitted_at;
        let edition =
            editions::newest_with(&mut *db, tournament.id, version.id, submitted_at).await?;
        if let Some(edition) = edition {
            drop(db);
            return Ok(Some(self.in_edition(tournament, &edition).await?));
        }
        let others = bot_list::versions(&mut *db, bot.id).await?;
        let is_replaced = others.iter().any(|other| {
            other.state == TrialState::Passed && other.version.number > version.number
        });
        if tournament.state != TournamentState::Open
            || bot.withdrawn_at.is_some()
            || bot.suspension_reason(version.id).is_some()
            || is_replaced
        {
            return Ok(None);
        }
        let next = self.next_edition(&mut db, tournament, bot, after_trial).await?;
        let path = format!("/t/{}", tournament.name);
        Ok(Some(EntryForecast { after_trial, path, ..next }))
    }

    /// A version plays in this edition.
    async fn in_edition(
        &self,
        tournament: &Tournament,
        edition: &Edition,
    ) -> Result<EntryForecast> {
        let census = if edition.state == EditionState::Running {
            lots::census(&self.pool, edition.tournament).await?
        } else {
            Vec::new()
        };
        let (completion, _) = self.completion_estimate(edition, &census).await?;
        let name = &tournament.name;
        Ok(EntryForecast {
            edition: edition.number,
            state: edition.state.as_str().to_owned(),
            after_trial: false,
            at_us: completion.map_or(0, |completion| micros(completion.eta)),
            path: format!("/t/{name}/ranking?edition={}", edition.number),
        })
    }

    /// A version of this bot plays in the next edition.
    async fn next_edition(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        bot: &bots::Bot,
        after_trial: bool,
    ) -> Result<EntryForecast> {
        let newest = editions::newest(&mut *db, tournament.id).await?;
        let edition = newest.as_ref().map_or(1, |newest| newest.number + 1);
        let due = auto_edition::due_at(db, self.queue.games(), tournament).await?;
        let entered = versions::entered_bots(&mut *db, tournament.id).await?;
        let count = entered.len() + usize::from(!entered.contains(&bot.id));
        let (state, at) = match TournamentFile::from_json(self.queue.games(), &tournament.settings)
        {
            Ok(file) if count < file.schedule.min_bots() => ("short", None),
            Ok(file) if file.rerun == Rerun::Manual || newest.is_none() => match due {
                Some(due) => ("due", Some(due)),
                None => ("manual", None),
            },
            Ok(file) => match due {
                Some(due) => ("due", Some(due.max(self.now()))),
                None if after_trial => ("due", Some(self.now() + auto_edition::window(&file))),
                None => ("next", None),
            },
            // The attempt to open the edition reports the error.
            Err(_) => ("next", None),
        };
        let at_us = at.map_or(0, |at: OffsetDateTime| micros(at));
        Ok(EntryForecast { edition, state: state.to_owned(), at_us, ..EntryForecast::default() })
    }
}
