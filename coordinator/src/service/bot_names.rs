//! Names of bots: each player has names that no other player can take.
//!
//! The bot `mybot` of the player with the handle `ada` is named `ada/mybot`, so forty players can
//! each have a `mybot`. Bots of organisers, house bots and bots from before this rule have plain
//! names. Requests may leave the owner out: a bot is found by its whole name, then among the
//! caller's bots, then by the short name if only one bot has it. A bot of which no version has
//! entered has its short name only until another bot with this short name enters.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arbiter_games::{BotName, EntrantName, split_owner};
use arbiter_proto::ids::TournamentId;
use arbiter_proto::v1::Submission;
use arbiter_ranking::Entrant;
use sqlx::PgConnection;

use super::refreshed_cache::RefreshedCache;
use super::{Caller, ErrorKind, Principal, Result, Service, ServiceError};
use crate::access::{Role, handle};
use crate::db::bots;
use crate::db::entrants::Roster;
use crate::db::tournaments::Tournament;

/// The names of the bots that are shown with their owners, by tournament.
pub(super) type NamesWithOwners = RefreshedCache<String, HashSet<String>>;

/// Maximum number of tournaments whose names are in memory.
pub(super) const MAX_TOURNAMENTS: usize = 256;
/// Maximum age of these names.
pub(super) const MAX_AGE: Duration = Duration::from_secs(2);
/// The number of bots that an error names.
const MAX_LISTED: usize = 5;

impl Service {
    /// The bot that a request names.
    pub(super) async fn bot(
        &self,
        caller: &Caller,
        tournament: TournamentId,
        name: &str,
    ) -> Result<bots::Bot> {
        let caller = caller.principal().map(|principal| principal.id);
        let mut named = bots::named(&self.pool, tournament, name, caller).await?;
        let owner = caller.map(|caller| caller.0);
        let place = choose(named.iter().map(Candidate::from), name, owner)?;
        Ok(named.swap_remove(place).bot)
    }

    /// The handle of the caller, with which the names of its bots begin, if it is a player.
    pub(crate) async fn own_handle(&self, caller: &Caller) -> Result<Option<String>> {
        let Some(principal) = caller.principal().filter(|one| one.role == Role::Player) else {
            return Ok(None);
        };
        if principal.handle.is_some() {
            return Ok(principal.handle.clone());
        }
        let mut transaction = self.pool.begin().await?;
        let handle = handle::of_token(&mut transaction, principal.id, &principal.name).await?;
        transaction.commit().await?;
        Ok(Some(handle))
    }

    /// The names of the bots of a tournament that are shown with their owners, because their short
    /// names mean other bots or several. They may be some seconds old.
    pub(crate) async fn names_with_owners(&self, tournament: &str) -> Result<Arc<HashSet<String>>> {
        let key = tournament.to_owned();
        let service = self.clone();
        let read = {
            let tournament = key.clone();
            async move {
                let id = service.tournament(&tournament).await?.id;
                let names = bots::shown_with_owners(&service.pool, id).await?;
                Ok(names.into_iter().collect())
            }
        };
        self.names_with_owners.get(key, read).await
    }

    /// A bot that the caller may manage, and its tournament. Among bots with this name, the
    /// caller's comes first.
    pub(super) async fn managed_bot(
        &self,
        principal: &Principal,
        tournament: &str,
        name: &str,
    ) -> Result<(Tournament, bots::Bot)> {
        let tournament = self.tournament(tournament).await?;
        let mut named = bots::named(&self.pool, tournament.id, name, Some(principal.id)).await?;
        let owner = Some(principal.id.0);
        let place = match named.iter().position(|named| named.bot.owner == owner) {
            Some(own) => own,
            None => choose(named.iter().map(Candidate::from), name, owner)?,
        };
        let bot = named.swap_remove(place).bot;
        if principal.owns(&bot) {
            return Ok((tournament, bot));
        }
        Err(ServiceError::permission_denied(format!(
            "the bot {} belongs to another player",
            bot.name
        )))
    }

    /// The entrant of an edition of a tournament that a request names. A short name means the same
    /// bot in all editions.
    pub(super) async fn entrant(
        &self,
        caller: &Caller,
        tournament: TournamentId,
        roster: &Roster,
        name: &str,
    ) -> Result<Entrant> {
        if let Some(entrant) = roster.find(name) {
            return Ok(entrant);
        }
        let bot = self.bot(caller, tournament, name).await?;
        roster.find(&bot.name).ok_or_else(|| ServiceError::missing("bot", name))
    }

    /// The bot of a submission, which is created if it is new. Other submissions to this bot wait
    /// until the transaction ends.
    pub(super) async fn find_or_create_bot(
        &self,
        db: &mut PgConnection,
        principal: &Principal,
        tournament: &Tournament,
        submission: &Submission,
    ) -> Result<bots::Bot> {
        let plain = bots::find_locked(&mut *db, tournament.id, &submission.bot).await?;
        if let Some(bot) = plain.filter(|bot| principal.owns(bot)) {
            let mut bot = check_house(principal, submission, bot)?;
            if bots::take_over(&mut *db, bot.id, principal.id).await? {
                bot.owner = Some(principal.id.0);
            }
            return Ok(bot);
        }
        let name = own_name(&mut *db, principal, &submission.bot).await?;
        if let Some(bot) = bots::find_locked(&mut *db, tournament.id, name.as_str()).await? {
            return Ok(bot);
        }
        if let Some(other) = bots::same_in_matches(&mut *db, tournament.id, name.as_str()).await? {
            return Err(ServiceError::already_exists(format!(
                "in matches, {name} has the same name as {other}; choose another name"
            )));
        }
        let owner = (!submission.house).then_some(principal.id);
        bots::create(&mut *db, tournament.id, owner, name.as_str(), self.now()).await?;
        let bot = bots::find(&mut *db, tournament.id, name.as_str()).await?;
        bot.ok_or_else(|| ServiceError::internal("the created bot is missing"))
    }
}

/// An organiser's bot stays a house bot, or one with an owner.
fn check_house(
    principal: &Principal,
    submission: &Submission,
    bot: bots::Bot,
) -> Result<bots::Bot> {
    if submission.house == bot.owner.is_none() {
        return Ok(bot);
    }
    let name = &bot.name;
    let error = match bot.owner {
        None => format!("the bot {name} is a house bot; add --house to submit a version of it"),
        Some(owner) if owner == principal.id.0 => {
            format!("the bot {name} is yours; submit a version of it without --house")
        }
        Some(_) => format!("the bot {name} is a player's; choose another name for the house bot"),
    };
    Err(ServiceError::already_exists(error))
}

/// The name of a new bot of the caller, which was submitted with or without its owner.
async fn own_name(db: &mut PgConnection, principal: &Principal, name: &str) -> Result<EntrantName> {
    let (owner, short) = split_owner(name);
    if principal.is_organiser() {
        if owner.is_some() {
            let error = format!("there is no bot {name}, and only its player can enter it");
            return Err(ServiceError::new(ErrorKind::NotFound, error));
        }
        return parse(short);
    }
    let handle = handle::of_token(db, principal.id, &principal.name).await?;
    if owner.is_some_and(|owner| owner != handle) {
        return Err(ServiceError::permission_denied(format!(
            "your bots are named {handle}/…, so {name} cannot be yours; submit it as {short}"
        )));
    }
    if RESERVED_BOT_NAMES.contains(&short) {
        let error = format!("addresses use the word `{short}`; choose another name for the bot");
        return Err(ServiceError::invalid_argument(error));
    }
    let longest = BotName::MAX_LENGTH - handle.len() - 1;
    if short.len() > longest {
        return Err(ServiceError::invalid_argument(format!(
            "the name {handle}/{short} is longer than {} characters; shorten {short} to {longest}",
            BotName::MAX_LENGTH
        )));
    }
    parse(&format!("{handle}/{short}"))
}

fn parse(name: &str) -> Result<EntrantName> {
    name.parse().map_err(|error: arbiter_games::BotNameError| {
        ServiceError::invalid_argument(error.to_string())
    })
}

/// The words that follow the name of a bot in addresses, so that no player's bot can have them.
pub(crate) const RESERVED_BOT_NAMES: [&str; 8] = [
    "download.zip",
    "head-to-head",
    "history",
    "log",
    "reinstate",
    "standing",
    "versions",
    "withdraw",
];

/// A bot that a request may name.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    name: &'a str,
    owner: Option<i32>,
    has_entered: bool,
}

impl<'a> From<&'a bots::NamedBot> for Candidate<'a> {
    fn from(named: &'a bots::NamedBot) -> Self {
        let bots::NamedBot { bot, has_entered } = named;
        Self { name: &bot.name, owner: bot.owner, has_entered: *has_entered }
    }
}

/// Which of these bots a request of `caller` names.
fn choose<'a>(
    bots: impl Iterator<Item = Candidate<'a>>,
    name: &str,
    caller: Option<i32>,
) -> Result<usize> {
    let bots: Vec<_> = bots.collect();
    let whole = bots.iter().position(|bot| bot.name == name);
    let own = || bots.iter().position(|bot| bot.owner.is_some() && bot.owner == caller);
    if let Some(place) = whole.or_else(own) {
        return Ok(place);
    }
    // A bot that never entered takes its short name from no other bot.
    let is_among_entered = bots.iter().any(|bot| bot.has_entered);
    let with_short = bots.iter().enumerate().filter(|(_, bot)| bot.has_entered == is_among_entered);
    match &with_short.collect::<Vec<_>>()[..] {
        [] => Err(ServiceError::missing("bot", name)),
        [(place, _)] => Ok(*place),
        several => {
            let names: Vec<_> = several.iter().map(|(_, bot)| bot.name).take(MAX_LISTED).collect();
            let more = if several.len() > MAX_LISTED { ", …" } else { "" };
            Err(ServiceError::invalid_argument(format!(
                "several bots are named {name}; add the owner: {}{more}",
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place of the chosen bot among these, which have entered.
    fn chosen(bots: &[(&str, Option<i32>)], name: &str, caller: Option<i32>) -> Result<usize> {
        let entered = |&(name, owner): &(_, _)| Candidate { name, owner, has_entered: true };
        choose(bots.iter().map(entered), name, caller)
    }

    #[test]
    fn a_name_means_the_whole_name_then_the_callers_bot_then_the_only_bot() {
        let bots = [("mybot", None), ("ada/mybot", Some(1)), ("bob/mybot", Some(2))];
        assert_eq!(chosen(&bots, "mybot", Some(2)), Ok(0));
        assert_eq!(chosen(&bots[1..], "mybot", Some(2)), Ok(1));
        assert_eq!(chosen(&bots[1..2], "mybot", None), Ok(0));
        let error = chosen(&bots[1..], "mybot", Some(3)).unwrap_err().to_string();
        assert!(error.contains("add the owner: ada/mybot, bob/mybot"), "{error}");
        assert!(chosen(&[], "mybot", None).unwrap_err().to_string().contains("no bot `mybot`"));
    }

    #[test]
    fn a_bot_that_never_entered_has_its_short_name_until_another_enters() {
        let bot = |name, owner, has_entered| Candidate { name, owner: Some(owner), has_entered };
        let chosen =
            |bots: &[Candidate<'_>], name: &str, caller| choose(bots.iter().copied(), name, caller);
        let failed = bot("ada/nf", 1, false);
        assert_eq!(chosen(&[failed], "nf", Some(3)), Ok(0));
        let bots = [failed, bot("bob/nf", 2, true), bot("eve/nf", 3, false)];
        assert_eq!(chosen(&bots, "nf", None), Ok(1));
        assert_eq!(chosen(&bots, "ada/nf", None), Ok(0), "the whole name");
        assert_eq!(chosen(&bots, "nf", Some(1)), Ok(0), "the caller's bot");
        let refusal = |bots: &[Candidate<'_>]| chosen(bots, "nf", None).unwrap_err().to_string();
        let none_entered = refusal(&[bots[0], bots[2]]);
        assert!(none_entered.contains("add the owner: ada/nf, eve/nf"), "{none_entered}");
        let two_entered = refusal(&[bots[0], bots[1], bot("cy/nf", 4, true)]);
        assert!(two_entered.contains("add the owner: bob/nf, cy/nf"), "{two_entered}");
    }
}
