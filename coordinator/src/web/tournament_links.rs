//! How the pages of a tournament name its bots and link to them: by the short name where only one
//! bot of the tournament has it, otherwise with the owner.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use arbiter_games::{EntrantName, split_owner};
use arbiter_proto::v1::Bot;
use arbiter_replay::ShownNames;
use maud::{Markup, html};

use super::api::escape;
use super::error::WebError;
use crate::service::Service;

/// The name of a tournament, with what the links to its bots need.
#[derive(Clone, Debug)]
pub(super) struct TournamentLinks {
    tournament: String,
    /// The names of the bots that are shown with their owners. `None`: all of them.
    with_owners: Option<Arc<HashSet<String>>>,
}

impl TournamentLinks {
    /// The links of a tournament's pages.
    pub(super) async fn of(service: &Service, tournament: &str) -> Result<Self, WebError> {
        Ok(Self::new(tournament, service.names_with_owners(tournament).await?))
    }

    /// The links of a tournament in which the bots with these names are shown with their owners.
    pub(super) fn new(tournament: &str, with_owners: Arc<HashSet<String>>) -> Self {
        Self { tournament: tournament.to_owned(), with_owners: Some(with_owners) }
    }

    /// The links of a tournament with these bots. Names are as on the server's pages: a bot that
    /// never entered takes its short name from no other bot, and a plain name stays as it is.
    pub(super) fn among(tournament: &str, bots: &[Bot]) -> Self {
        let has_short = |bot: &Bot| bot.newest.is_some() || split_owner(&bot.name).0.is_none();
        // The numbers of bots with a short name: all of them, and those that have it.
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for bot in bots {
            let (all, having) = counts.entry(split_owner(&bot.name).1).or_default();
            *all += 1;
            *having += usize::from(has_short(bot));
        }
        let is_with_owner = |bot: &&Bot| {
            let (all, having) = counts[split_owner(&bot.name).1];
            if has_short(bot) { having > 1 } else { all > 1 }
        };
        let with_owners = bots.iter().filter(is_with_owner).map(|bot| bot.name.clone()).collect();
        Self::new(tournament, Arc::new(with_owners))
    }

    /// Links with whole names, for lists of several tournaments.
    pub(super) fn with_owners(tournament: &str) -> Self {
        Self { tournament: tournament.to_owned(), with_owners: None }
    }

    /// The name of a bot as people read it.
    pub(super) fn label<'a>(&self, bot: &'a str) -> &'a str {
        let is_short = self.with_owners.as_ref().is_some_and(|names| !names.contains(bot));
        if is_short { split_owner(bot).1 } else { bot }
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

    /// The path of the list of the matches of two bots in an edition.
    pub(super) fn matches_between(&self, edition: i32, bot: &str, opponent: &str) -> String {
        let bot = escape(bot);
        let opponent = escape(opponent);
        format!("/t/{self}/matches?edition={edition}&bot={bot}&opponent={opponent}")
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

#[cfg(test)]
mod tests {
    use arbiter_proto::v1::Version;

    use super::*;

    #[test]
    fn a_bot_that_never_entered_takes_its_short_name_from_no_other() {
        let bot = |name: &str, has_entered: bool| Bot {
            name: name.to_owned(),
            newest: has_entered.then(Version::default),
            ..Bot::default()
        };
        let bots = [
            bot("ada/nf", false),
            bot("bob/nf", true),
            bot("ada/early", false),
            bot("ada/both", true),
            bot("bob/both", true),
            bot("house", false),
            bot("bob/house", true),
        ];
        let links = TournamentLinks::among("cup", &bots);
        let labels = bots.each_ref().map(|bot| links.label(&bot.name));
        let expected = ["ada/nf", "nf", "early", "ada/both", "bob/both", "house", "bob/house"];
        assert_eq!(labels, expected);
    }
}
