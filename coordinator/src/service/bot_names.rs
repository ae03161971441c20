//! Names of bots that are taken: which name to propose instead, and which bots give up theirs.

use arbiter_proto::ids::{TokenId, TournamentId};
use serde_json::json;
use sqlx::PgConnection;

use super::{Principal, Result, Service, ServiceError, change};
use crate::db::tournaments::Tournament;
use crate::db::{audit_log, bots, tokens};

/// Maximum length of a bot's name, in characters.
const MAX_NAME: usize = 64;
/// Maximum length of the owner's part of a proposed name.
const MAX_OWNER: usize = 24;

impl Service {
    /// The error for a name that another bot has, with a free name.
    pub(super) async fn name_taken(
        &self,
        db: &mut PgConnection,
        principal: &Principal,
        tournament: TournamentId,
        bot: &bots::Bot,
    ) -> Result<ServiceError> {
        let name = &bot.name;
        let proposal = proposed_name(db, tournament, Some(principal.id), name).await?;
        let holder = if bot.owner.is_none() { "a house bot" } else { "another player's bot" };
        Ok(ServiceError::already_exists(format!(
            "{holder} is named {name}; choose another name, such as {proposal} (with arbiter \
             submit: --name {proposal})"
        )))
    }

    /// Renames a bot that never entered, so that another owner can use its name. Its owner still
    /// sees why its versions failed.
    pub(super) async fn free_name(
        &self,
        db: &mut PgConnection,
        principal: &Principal,
        tournament: &Tournament,
        bot: &bots::Bot,
    ) -> Result<()> {
        let name =
            proposed_name(&mut *db, tournament.id, bot.owner.map(TokenId), &bot.name).await?;
        bots::rename(&mut *db, bot.id, &name).await?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(json!({"name": bot.name}), json!({"name": name}));
        let by = Some(principal.id);
        let now = self.now();
        audit_log::write(&mut *db, by, "rename", &subject, Some(&detail), now).await?;
        tracing::info!(tournament = tournament.name, bot = bot.name, name, "renamed");
        Ok(())
    }
}

/// A name like `ada-mybot` that no bot of the tournament has, for the bot `name` of this owner.
async fn proposed_name(
    db: &mut PgConnection,
    tournament: TournamentId,
    owner: Option<TokenId>,
    name: &str,
) -> Result<String> {
    let token = match owner {
        Some(owner) => tokens::get(&mut *db, owner).await?,
        None => None,
    };
    let owner = token.map(|token| token.name).unwrap_or_default();
    let base = with_owner(&owner, name);
    let mut candidate = base.clone();
    let mut number = 2;
    while bots::find(&mut *db, tournament, &candidate).await?.is_some() {
        let suffix = format!("-{number}");
        let kept: String = base.chars().take(MAX_NAME - suffix.len()).collect();
        candidate = kept + &suffix;
        number += 1;
    }
    Ok(candidate)
}

/// The name of a bot with its owner's name before it, in the characters of bots' names.
fn with_owner(owner: &str, name: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let words = owner.split(|c| !is_allowed(c)).filter(|word| !word.is_empty());
    let owner: String = words.collect::<Vec<_>>().join("-").chars().take(MAX_OWNER).collect();
    let owner = if owner.is_empty() { "my" } else { &owner };
    let text = format!("{owner}-{name}");
    text.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposed_names_are_names_of_bots() {
        assert_eq!(with_owner("alice", "mybot"), "alice-mybot");
        assert_eq!(with_owner("Jan  Kowalski, 2b", "mybot"), "Jan-Kowalski-2b-mybot");
        assert_eq!(with_owner("żółć", "mybot"), "my-mybot");
        let long = with_owner(&"x".repeat(64), &"y".repeat(64));
        assert!(long.parse::<arbiter_games::BotName>().is_ok(), "{long}");
    }
}
