//! The rules by which bots may enter, leave and return.

use arbiter_proto::ids::TokenId;
use arbiter_proto::v1::{ReinstateBotRequest, ReinstateBotResponse};
use serde_json::json;
use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};

use super::entry_state::EntryState;
use super::leaderboard_freeze::entry_rules;
use super::{Caller, ErrorKind, Principal, Result, Service, ServiceError, change, format_time};
use crate::db::tokens::{self, Role};
use crate::db::tournaments::{self, Tournament};
use crate::db::{bots, versions};

/// The period of the limit `per_hour` on an owner's versions.
const HOUR: Duration = Duration::HOUR;

/// Refuses a change after the end of a tournament, or after its entry has closed. Organisers may
/// still change house bots. `house` is true for a house bot.
fn check_entry(
    principal: &Principal,
    tournament: &Tournament,
    house: bool,
    now: OffsetDateTime,
) -> Result<()> {
    let state = EntryState::of(tournament, now)?;
    let may_enter = match state {
        EntryState::Open(_) => true,
        EntryState::Closed(_) => house && principal.is_organiser(),
        EntryState::Rehearsal | EntryState::Over(_) => false,
    };
    if may_enter {
        return Ok(());
    }
    Err(ServiceError::failed_precondition(state.text(tournament)))
}

/// Refuses a version that is too late by [`check_entry`]. In a tournament with a beacon this
/// includes versions of organisers. Otherwise an organiser who knows the value of the beacon could
/// add bots until the plan suits them.
pub(super) fn check_version_entry(
    principal: &Principal,
    tournament: &Tournament,
    house: bool,
    now: OffsetDateTime,
) -> Result<()> {
    check_entry(principal, tournament, house && tournament.beacon.is_none(), now)
}

impl Service {
    /// Refuses that a bot leaves or returns too late, by [`check_entry`]. Organisers may still
    /// change players' bots, but not house bots of a tournament with a beacon. Otherwise an
    /// organiser who knows the value of the beacon could choose between two plans for each house
    /// bot.
    pub(super) async fn check_bot_entry(
        &self,
        principal: &Principal,
        tournament: &Tournament,
        bot: &bots::Bot,
    ) -> Result<()> {
        check_entry(principal, tournament, true, self.now())?;
        let EntryState::Closed(closed) = self.entry_state(tournament)? else { return Ok(()) };
        if tournament.beacon.is_none() || !self.is_of_organisers(bot).await? {
            return Ok(());
        }
        let name = &tournament.name;
        let bot = &bot.name;
        Err(ServiceError::failed_precondition(format!(
            "the bot {bot} is a house bot, and entry to {name} closed at {}; the value of the \
             beacon may be known since then, so house bots cannot be withdrawn or reinstated \
             before the tournament is over",
            format_time(closed)
        )))
    }

    /// The state of entry, and why its rules now refuse that the caller withdraws or reinstates a
    /// bot that they manage.
    pub(crate) async fn entry_of_bot(
        &self,
        principal: &Principal,
        tournament: &str,
        bot: &str,
    ) -> Result<(EntryState, Option<ServiceError>)> {
        let (tournament, row) = self.managed_bot(principal, tournament, bot).await?;
        let entry = self.entry_state(&tournament)?;
        match self.check_bot_entry(principal, &tournament, &row).await {
            Ok(()) => Ok((entry, None)),
            Err(error) if error.kind() == ErrorKind::FailedPrecondition => Ok((entry, Some(error))),
            Err(error) => Err(error),
        }
    }

    /// Whether a bot is a house bot: it has no owner, or its owner is an organiser.
    async fn is_of_organisers(&self, bot: &bots::Bot) -> Result<bool> {
        let Some(owner) = bot.owner else { return Ok(true) };
        let token = tokens::get(&self.pool, TokenId(owner)).await?;
        Ok(token.is_some_and(|token| matches!(token.role, Role::Admin | Role::Organiser)))
    }

    /// Refuses a version whose owner submitted too many within an hour. House bots have no owner.
    pub(super) async fn check_quota(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        owner: Option<i32>,
    ) -> Result<()> {
        let Some(owner) = owner else { return Ok(()) };
        let per_hour = entry_rules(tournament)?.per_hour;
        let since = self.now() - HOUR;
        let times = versions::of_owner(db, tournament.id, owner, since, per_hour).await?;
        // The next version is allowed when the oldest counted one is an hour old.
        match times.get((per_hour as usize).saturating_sub(1)) {
            Some(oldest) if per_hour > 0 => {
                let allowed_at = *oldest + HOUR + Duration::SECOND;
                let error = format!(
                    "the tournament {} takes at most {per_hour} versions an hour from an owner; submit \
                     again at {}",
                    tournament.name,
                    format_time(allowed_at)
                );
                let wait = (allowed_at - self.now()).unsigned_abs();
                Err(ServiceError::resource_exhausted(error).with_retry_after(wait))
            }
            _ => Ok(()),
        }
    }

    /// Lets a withdrawn bot take part again.
    pub(super) async fn undo_withdrawal(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        bot: &bots::Bot,
        now: OffsetDateTime,
    ) -> Result<()> {
        if bots::enter_again(&mut *db, bot.id).await? {
            tournaments::mark_changed(&mut *db, tournament.id, now).await?;
        }
        Ok(())
    }

    /// Reinstates a suspended bot.
    pub(crate) async fn reinstate_bot(
        &self,
        caller: &Caller,
        ReinstateBotRequest { tournament, bot }: ReinstateBotRequest,
    ) -> Result<ReinstateBotResponse> {
        let principal = caller.require(Role::Organiser)?;
        let tournament = self.tournament(&tournament).await?;
        let row = self.bot(caller, tournament.id, &bot).await?;
        self.check_bot_entry(principal, &tournament, &row).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        if !bots::reinstate(&mut *db, row.id).await? {
            let error = format!("the bot {} is not suspended", row.name);
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::mark_changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {}", tournament.name, row.name);
        let before = json!({"stood_down": row.stood_down_reason});
        let detail = change(before, json!({"stood_down": null}));
        self.commit_change(transaction, principal, "reinstate", &subject, Some(detail)).await?;
        Ok(ReinstateBotResponse { bot: row.name })
    }
}
