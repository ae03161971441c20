//! How the pages of a tournament name its bots and link to them: by the short name where only one
//! bot of the tournament has it, otherwise with the owner.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use arbiter_games::{EntrantName, split_owner};
use arbiter_replay::ShownNames;
use maud::{Markup, html};

use super::error::WebError;
use crate::service::Service;

/// The name of a tournament, with what the links to its bots need.
#[derive(Clone, Debug)]
pub(super) struct TournamentLinks {
    tournament: String,
    /// The short names that several bots have. `None`: all bots are shown with their owners.
    shared: Option<Arc<HashSet<String>>>,
}

impl TournamentLinks {
    /// The links of a tournament's pages.
    pub(super) async fn of(service: &Service, tournament: &str) -> Result<Self, WebError> {
        Ok(Self::new(tournament, service.shared_bot_names(tournament).await?))
    }

    /// The links of a tournament in which several bots have these short names.
    pub(super) fn new(tournament: &str, shared: Arc<HashSet<String>>) -> Self {
        Self { tournament: tournament.to_owned(), shared: Some(shared) }
    }

    /// The links of a tournament with these bots.
    pub(super) fn among(tournament: &str, bots: &[String]) -> Self {
        let mut seen = HashSet::new();
        let shorts = bots.iter().map(|bot| split_owner(bot).1);
        let shared = shorts.filter(|short| !seen.insert(*short)).map(str::to_owned).collect();
        Self::new(tournament, Arc::new(shared))
    }

    /// Links with whole names, for lists of several tournaments.
    pub(super) fn with_owners(tournament: &str) -> Self {
        Self { tournament: tournament.to_owned(), shared: None }
    }

    /// The name of a bot as people read it.
    pub(super) fn label<'a>(&self, bot: &'a str) -> &'a str {
        let (_, short) = split_owner(bot);
        let is_unique = self.shared.as_ref().is_some_and(|shared| !shared.contains(short));
        if is_unique { short } else { bot }
    }

    /// The owner of a bot, if the bot's label does not begin with the owner's handle.
    pub(super) fn owner_beside<'a>(&self, bot: &str, owner: &'a str) -> Option<&'a str> {
        let is_named = split_owner(self.label(bot)).0.is_some();
        Some(owner).filter(|owner| !owner.is_empty() && !is_named)
    }

    /// The names of these bots to show in replays instead of those in the records.
    pub(super) fn in_replays<'a>(&self, bots: impl Iterator<Item = &'a str>) -> ShownNames {
        let names = bots.filter_map(|bot| {
            let name: EntrantName = bot.parse().ok()?;
            Some((name.in_matches().clone(), self.label(bot).parse().ok()?))
        });
        names.collect()
    }

    /// A link to the page of a bot.
    pub(super) fn bot(&self, bot: &str) -> Markup {
        html! { a href=(self.bot_path(bot)) { (self.label(bot)) } }
    }

    /// The path of the page of a bot.
    pub(super) fn bot_path(&self, bot: &str) -> String {
        format!("/t/{self}/bots/{bot}")
    }
}

/// Sorts bots by their short names, then by their owners.
pub(super) fn by_short_name(bot: &str) -> (String, String) {
    (split_owner(bot).1.to_lowercase(), bot.to_lowercase())
}

impl fmt::Display for TournamentLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tournament)
    }
}

/// The name of the tournament.
impl Deref for TournamentLinks {
    type Target = str;

    fn deref(&self) -> &str {
        &self.tournament
    }
}
