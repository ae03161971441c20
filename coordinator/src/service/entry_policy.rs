//! Who may enter, leave and come back, and until when.

use arbiter_proto::ids::TokenId;
use arbiter_proto::v1::{ReinstateBotRequest, ReinstateBotResponse};
use serde_json::json;
use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};

use super::visibility::submissions;
use super::{Caller, Principal, Result, Service, ServiceError, change, moment};
use crate::db::tokens::{self, Role};
use crate::db::tournaments::{self, Tournament, TournamentState};
use crate::db::{bots, versions};

/// The time in which `per_hour` versions of an owner are taken.
const HOUR: Duration = Duration::HOUR;

/// Refuses what comes after the end of a tournament, or after its entry has closed. Organisers
/// may still change the `house`.
fn entry(who: &Principal, tournament: &Tournament, house: bool, now: OffsetDateTime) -> Result<()> {
    let name = &tournament.name;
    if tournament.state != TournamentState::Open {
        let error = format!("tournament {name} is over: no bot can enter or leave");
        return Err(ServiceError::failed_precondition(error));
    }
    let closed = submissions(tournament)?.closes.filter(|closes| closes.0 <= now);
    match closed {
        Some(closes) if !(house && who.organises()) => {
            let error = format!(
                "entry to {name} closed at {}: no bot can enter, leave or change any more",
                moment(closes.0)
            );
            Err(ServiceError::failed_precondition(error))
        }
        _ => Ok(()),
    }
}

/// Refuses a version that comes too late, by [`entry`]. In a tournament with a beacon that
/// holds for organisers too: with its value known, they could add bots until the plan suits them.
pub(super) fn entry_of_version(
    who: &Principal,
    tournament: &Tournament,
    house: bool,
    now: OffsetDateTime,
) -> Result<()> {
    entry(who, tournament, house && tournament.beacon.is_none(), now)
}

impl Service {
    /// Refuses that a bot leaves or comes back too late, by [`entry`]; organisers may still
    /// decide about players' bots. In a tournament with a beacon its house bots stay as they are: with
    /// its value known, each of them would let an organiser choose between two plans.
    pub(super) async fn entry_of_bot(
        &self,
        who: &Principal,
        tournament: &Tournament,
        bot: &bots::Bot,
    ) -> Result<()> {
        entry(who, tournament, true, self.now())?;
        let closed = submissions(tournament)?.closes.filter(|closes| closes.0 <= self.now());
        let Some(closes) = closed.filter(|_| tournament.beacon.is_some()) else { return Ok(()) };
        if !self.is_of_organisers(bot).await? {
            return Ok(());
        }
        let (name, bot) = (&tournament.name, &bot.name);
        Err(ServiceError::failed_precondition(format!(
            "{bot} is a house bot, and entry to {name} closed at {}: from then on the value of its \
             beacon may be known, so house bots can neither be withdrawn nor reinstated until {name} \
             is closed",
            moment(closes.0)
        )))
    }

    /// Whether an organiser entered a bot: without an owner, or as their own.
    async fn is_of_organisers(&self, bot: &bots::Bot) -> Result<bool> {
        let Some(owner) = bot.owner else { return Ok(true) };
        let token = tokens::get(&self.pool, TokenId(owner)).await?;
        Ok(token.is_some_and(|token| matches!(token.role, Role::Admin | Role::Organiser)))
    }

    /// Refuses a version of an owner who has submitted too many of late. House bots have no owner.
    pub(super) async fn quota(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        owner: Option<i32>,
    ) -> Result<()> {
        let Some(owner) = owner else { return Ok(()) };
        let most = submissions(tournament)?.per_hour;
        let since = self.now() - HOUR;
        let past = versions::of_owner(db, tournament.id, owner, since, most).await;
        // The oldest of those that count makes room when it is an hour old.
        match past?.get((most as usize).saturating_sub(1)) {
            Some(oldest) if most > 0 => {
                let again = *oldest + HOUR + Duration::SECOND;
                let error = format!(
                    "{most} versions within an hour are the most that {} takes from an owner; the \
                     next one is taken at {}",
                    tournament.name,
                    moment(again)
                );
                let wait = (again - self.now()).unsigned_abs();
                Err(ServiceError::resource_exhausted(error).with_retry_after(wait))
            }
            _ => Ok(()),
        }
    }

    /// Lets a bot that its owner withdrew take part again.
    pub(super) async fn back(
        &self,
        db: &mut PgConnection,
        tournament: &Tournament,
        bot: &bots::Bot,
        now: OffsetDateTime,
    ) -> Result<()> {
        if bots::enter_again(&mut *db, bot.id).await? {
            tournaments::changed(&mut *db, tournament.id, now).await?;
        }
        Ok(())
    }

    /// Lets a bot that was stood down take part again.
    pub(crate) async fn reinstate_bot(
        &self,
        caller: &Caller,
        ReinstateBotRequest { tournament, bot }: ReinstateBotRequest,
    ) -> Result<ReinstateBotResponse> {
        let who = caller.require(Role::Organiser)?;
        let tournament = self.tournament(&tournament).await?;
        let found = bots::find(&self.pool, tournament.id, &bot).await?;
        let found = found.ok_or_else(|| ServiceError::missing("bot", &bot))?;
        self.entry_of_bot(who, &tournament, &found).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        if !bots::reinstate(&mut *db, found.id).await? {
            let error = format!("{bot} is not stood down");
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {bot}", tournament.name);
        let before = json!({"stood_down": found.stood_down_reason});
        let detail = change(&before, &json!({"stood_down": null}));
        self.note_in(&mut *db, who, "reinstate", &subject, Some(&detail)).await?;
        transaction.commit().await?;
        Ok(ReinstateBotResponse {})
    }
}
