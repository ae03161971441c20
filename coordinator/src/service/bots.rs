//! Bots: listed, shown with their versions and logs, withdrawn.

use arbiter_proto::ids::{EditionId, MatchId, TournamentId};
use arbiter_proto::v1::{
    self, Bot, GetBotLogRequest, GetBotLogResponse, GetBotRequest, GetBotResponse, ListBotsRequest,
    ListBotsResponse, LogEntry, Version, WithdrawBotRequest, WithdrawBotResponse,
};
use arbiter_ranking::Entrant;
use serde_json::json;

use super::leaderboard_freeze::Visibility;
use super::submissions::message;
use super::{Caller, Principal, Result, Service, ServiceError, change};
use crate::access::Role;
use crate::db::bot_list::{self, BotSummary, TriedVersion};
use crate::db::entrants::{self, Roster};
use crate::db::evidence::{self, Evidence};
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::tournaments::{self, Tournament};
use crate::db::{bots, editions};

/// Lines of a log if the request has no limit.
const DEFAULT_LINES: u32 = 100;
/// Lines of a log, at most.
const MAX_LINES: u32 = 1000;

impl Service {
    pub(crate) async fn list_bots(
        &self,
        caller: &Caller,
        request: ListBotsRequest,
    ) -> Result<ListBotsResponse> {
        let tournament = self.tournament(&request.tournament).await?;
        let found = bot_list::list(&self.pool, tournament.id, None).await?;
        let bots = found.iter().map(|found| bot_message(found, caller)).collect();
        Ok(ListBotsResponse { bots })
    }

    pub(crate) async fn get_bot(
        &self,
        caller: &Caller,
        GetBotRequest { tournament, bot }: GetBotRequest,
    ) -> Result<GetBotResponse> {
        let tournament = self.tournament(&tournament).await?;
        let found = self.listed(tournament.id, &bot).await?;
        let versions = bot_list::versions(&self.pool, found.bot.id).await?;
        let who = caller.principal();
        let versions = versions.iter().map(|tried| message(&found.bot, tried, who)).collect();
        Ok(GetBotResponse { bot: Some(bot_message(&found, caller)), versions })
    }

    /// The versions of a bot, newest first, as far as the caller may see them.
    pub(crate) async fn versions_of(
        &self,
        caller: &Caller,
        tournament: &str,
        bot: &str,
    ) -> Result<Vec<Version>> {
        let tournament = self.tournament(tournament).await?;
        let found = bots::find(&self.pool, tournament.id, bot).await?;
        let bot = found.ok_or_else(|| ServiceError::missing("bot", bot))?;
        let versions = bot_list::versions(&self.pool, bot.id).await?;
        Ok(versions.iter().map(|tried| message(&bot, tried, caller.principal())).collect())
    }

    pub(crate) async fn get_bot_log(
        &self,
        caller: &Caller,
        GetBotLogRequest { tournament, bot, limit, forfeits }: GetBotLogRequest,
    ) -> Result<GetBotLogResponse> {
        let who = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(who, &tournament, &bot).await?;
        let limit = if limit == 0 { DEFAULT_LINES } else { limit.min(MAX_LINES) };
        let visibility = self.visibility(&tournament, caller)?;
        let mut lines = Vec::new();
        for (edition, entrant) in entrants::editions_of(&self.pool, bot.id).await? {
            let room = limit as usize - lines.len();
            lines.extend(self.entrant_log((edition, entrant), forfeits, room, &visibility).await?);
            if lines.len() == limit as usize {
                break;
            }
        }
        let listed = self.listed(tournament.id, &bot.name).await?;
        let stood_down = listed.suspension_reason().unwrap_or_default().to_owned();
        Ok(GetBotLogResponse { entries: lines, suspended_reason: stood_down })
    }

    pub(crate) async fn withdraw_bot(
        &self,
        caller: &Caller,
        WithdrawBotRequest { tournament, bot }: WithdrawBotRequest,
    ) -> Result<WithdrawBotResponse> {
        let who = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(who, &tournament, &bot).await?;
        self.check_bot_entry(who, &tournament, &bot).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        if !bots::withdraw(&mut *db, bot.id, self.now()).await? {
            let error = format!("{} is already withdrawn", bot.name);
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::mark_changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(&json!({"withdrawn": false}), &json!({"withdrawn": true}));
        self.record_change(&mut *db, who, "withdraw", &subject, Some(&detail)).await?;
        transaction.commit().await?;
        Ok(WithdrawBotResponse {})
    }
}

/// A bot as a message. Its owner sees why it is suspended.
fn bot_message(found: &BotSummary, caller: &Caller) -> Bot {
    let BotSummary { bot, owner, entered, pending } = found;
    let reason = found.suspension_reason();
    let version = |tried: &Option<TriedVersion>| {
        tried.as_ref().map(|tried| message(bot, tried, caller.principal()))
    };
    Bot {
        name: bot.name.clone(),
        owner: owner.clone().unwrap_or_default(),
        withdrawn: bot.withdrawn_at.is_some(),
        owned_by_caller: caller.is_owner(bot.owner),
        suspended: reason.is_some(),
        suspended_reason: reason
            .filter(|_| caller.may_inspect(bot.owner))
            .unwrap_or_default()
            .to_owned(),
        newest: version(entered),
        pending: version(pending),
    }
}

/// A match in the log of one of its entrants.
fn log_line(edition: EditionId, owner: Entrant, roster: &Roster, played: &PlayedMatch) -> LogEntry {
    let seats = &played.seats.0;
    let seat = seats.iter().position(|entrant| *entrant == owner).unwrap_or_default();
    let name = |entrant: &Entrant| roster.get(*entrant).map(|named| named.name.clone());
    LogEntry {
        r#match: MatchId { edition, number: played.result.number }.to_string(),
        seat: u32::try_from(seat + 1).unwrap_or(u32::MAX),
        bots: seats.iter().filter_map(name).collect(),
        score: played.score(seat).to_vec(),
        forfeit: played
            .result
            .forfeit(seat)
            .map(|kind| kind.as_str().to_owned())
            .unwrap_or_default(),
        evidence: None,
    }
}

/// Why a seat forfeited, as a message.
pub(super) fn evidence_message(evidence: &Evidence) -> v1::Evidence {
    let Evidence { detail, wall_us, cpu_us, .. } = evidence;
    v1::Evidence { detail: detail.clone(), wall_us: *wall_us, cpu_us: *cpu_us }
}

impl Service {
    /// The matches of an entrant, or only its forfeits, newest first, `room` at most.
    async fn entrant_log(
        &self,
        (edition, entrant): (EditionId, Entrant),
        forfeits: bool,
        room: usize,
        visibility: &Visibility,
    ) -> Result<Vec<LogEntry>> {
        let roster = Roster::of(&self.pool, edition).await?;
        let found = editions::get(&self.pool, edition).await?;
        let shown = found.is_some_and(|edition| visibility.shows(&edition));
        let mut matches =
            played_matches::of_entrant(&self.pool, edition, entrant, forfeits).await?;
        matches.truncate(room);
        let numbers: Vec<_> = matches.iter().map(|played| played.result.number).collect();
        let evidence = evidence::of_matches(&self.pool, edition, &numbers).await?;
        let lines = matches.iter().map(|played| {
            let mut line = log_line(edition, entrant, &roster, played);
            let fits = |found: &&Evidence| {
                found.number == played.result.number && u32::try_from(found.seat) == Ok(line.seat)
            };
            line.evidence = evidence.iter().find(fits).map(evidence_message);
            if !shown {
                line.score.clear();
            }
            line
        });
        Ok(lines.collect())
    }

    /// A bot with the state of its versions.
    async fn listed(&self, tournament: TournamentId, name: &str) -> Result<BotSummary> {
        let found = bots::find(&self.pool, tournament, name).await?;
        let only = found.map(|bot| bot.id).ok_or_else(|| ServiceError::missing("bot", name))?;
        let listed = bot_list::list(&self.pool, tournament, Some(only)).await?;
        listed.into_iter().next().ok_or_else(|| ServiceError::missing("bot", name))
    }

    /// A bot that the caller may manage, and its tournament.
    pub(super) async fn managed_bot(
        &self,
        who: &Principal,
        tournament: &str,
        name: &str,
    ) -> Result<(Tournament, bots::Bot)> {
        let tournament = self.tournament(tournament).await?;
        let found = bots::find(&self.pool, tournament.id, name).await?;
        let bot = found.ok_or_else(|| ServiceError::missing("bot", name))?;
        if who.owns(&bot) {
            return Ok((tournament, bot));
        }
        Err(ServiceError::permission_denied(format!("{name} belongs to another player")))
    }
}
