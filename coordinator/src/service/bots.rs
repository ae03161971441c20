//! Bots: their lists, versions and logs, and their withdrawal.

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
use crate::db::forfeit_evidence::{self, Evidence};
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::tournaments::{self, Tournament};
use crate::db::{bots, editions};

/// The number of lines of a log if the request has no limit.
const DEFAULT_LINES: u32 = 100;
/// Maximum number of lines of a log.
const MAX_LINES: u32 = 1000;

impl Service {
    pub(crate) async fn list_bots(
        &self,
        caller: &Caller,
        request: ListBotsRequest,
    ) -> Result<ListBotsResponse> {
        let tournament = self.tournament(&request.tournament).await?;
        let rows = bot_list::list(&self.pool, tournament.id, None).await?;
        let bots = rows.iter().map(|row| bot_message(row, caller)).collect();
        Ok(ListBotsResponse { bots })
    }

    pub(crate) async fn get_bot(
        &self,
        caller: &Caller,
        GetBotRequest { tournament, bot }: GetBotRequest,
    ) -> Result<GetBotResponse> {
        let tournament = self.tournament(&tournament).await?;
        let row = self.bot_row(tournament.id, &bot).await?;
        let versions = bot_list::versions(&self.pool, row.bot.id).await?;
        let principal = caller.principal();
        let versions =
            versions.iter().map(|version| message(&row.bot, version, principal)).collect();
        Ok(GetBotResponse { bot: Some(bot_message(&row, caller)), versions })
    }

    /// The versions of a bot, newest first, without details that the caller must not see.
    pub(crate) async fn versions_of(
        &self,
        caller: &Caller,
        tournament: &str,
        bot: &str,
    ) -> Result<Vec<Version>> {
        let tournament = self.tournament(tournament).await?;
        let row = bots::find(&self.pool, tournament.id, bot).await?;
        let bot = row.ok_or_else(|| ServiceError::missing("bot", bot))?;
        let versions = bot_list::versions(&self.pool, bot.id).await?;
        let principal = caller.principal();
        Ok(versions.iter().map(|version| message(&bot, version, principal)).collect())
    }

    pub(crate) async fn get_bot_log(
        &self,
        caller: &Caller,
        GetBotLogRequest { tournament, bot, limit, forfeits }: GetBotLogRequest,
    ) -> Result<GetBotLogResponse> {
        let principal = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(principal, &tournament, &bot).await?;
        let limit = if limit == 0 { DEFAULT_LINES } else { limit.min(MAX_LINES) };
        let visibility = self.visibility(&tournament, caller)?;
        let mut lines = Vec::new();
        for (edition, entrant) in entrants::editions_of(&self.pool, bot.id).await? {
            let max_lines = limit as usize - lines.len();
            let log = self.entrant_log((edition, entrant), forfeits, max_lines, &visibility);
            lines.extend(log.await?);
            if lines.len() == limit as usize {
                break;
            }
        }
        let row = self.bot_row(tournament.id, &bot.name).await?;
        let suspended_reason = row.suspension_reason().unwrap_or_default().to_owned();
        Ok(GetBotLogResponse { entries: lines, suspended_reason })
    }

    pub(crate) async fn withdraw_bot(
        &self,
        caller: &Caller,
        WithdrawBotRequest { tournament, bot }: WithdrawBotRequest,
    ) -> Result<WithdrawBotResponse> {
        let principal = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(principal, &tournament, &bot).await?;
        self.check_bot_entry(principal, &tournament, &bot).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        if !bots::withdraw(&mut *db, bot.id, self.now()).await? {
            let error = format!("{} is already withdrawn", bot.name);
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::mark_changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(&json!({"withdrawn": false}), &json!({"withdrawn": true}));
        self.record_change(&mut *db, principal, "withdraw", &subject, Some(&detail)).await?;
        transaction.commit().await?;
        Ok(WithdrawBotResponse {})
    }
}

/// A bot as a message. Its owner sees why it is suspended.
fn bot_message(row: &BotSummary, caller: &Caller) -> Bot {
    let BotSummary { bot, owner, entered, pending } = row;
    let reason = row.suspension_reason();
    let version =
        |row: &Option<TriedVersion>| row.as_ref().map(|row| message(bot, row, caller.principal()));
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
fn log_line(
    edition: EditionId,
    log_entrant: Entrant,
    roster: &Roster,
    played: &PlayedMatch,
) -> LogEntry {
    let seats = &played.seats.0;
    let seat = seats.iter().position(|entrant| *entrant == log_entrant).unwrap_or_default();
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
    /// The matches of an entrant, or only its forfeits, newest first. At most `max_lines` of them.
    async fn entrant_log(
        &self,
        (edition, entrant): (EditionId, Entrant),
        forfeits: bool,
        max_lines: usize,
        visibility: &Visibility,
    ) -> Result<Vec<LogEntry>> {
        let roster = Roster::of(&self.pool, edition).await?;
        let row = editions::get(&self.pool, edition).await?;
        let shows_scores = row.is_some_and(|edition| visibility.shows(&edition));
        let mut matches =
            played_matches::of_entrant(&self.pool, edition, entrant, forfeits).await?;
        matches.truncate(max_lines);
        let numbers: Vec<_> = matches.iter().map(|played| played.result.number).collect();
        let evidence = forfeit_evidence::of_matches(&self.pool, edition, &numbers).await?;
        let lines = matches.iter().map(|played| {
            let mut line = log_line(edition, entrant, &roster, played);
            let is_of_line = |row: &&Evidence| {
                row.number == played.result.number && u32::try_from(row.seat) == Ok(line.seat)
            };
            line.evidence = evidence.iter().find(is_of_line).map(evidence_message);
            if !shows_scores {
                line.score.clear();
            }
            line
        });
        Ok(lines.collect())
    }

    /// A bot with the state of its versions.
    async fn bot_row(&self, tournament: TournamentId, name: &str) -> Result<BotSummary> {
        let bot = bots::find(&self.pool, tournament, name).await?;
        let id = bot.map(|bot| bot.id).ok_or_else(|| ServiceError::missing("bot", name))?;
        let rows = bot_list::list(&self.pool, tournament, Some(id)).await?;
        rows.into_iter().next().ok_or_else(|| ServiceError::missing("bot", name))
    }

    /// A bot that the caller may manage, and its tournament.
    pub(super) async fn managed_bot(
        &self,
        principal: &Principal,
        tournament: &str,
        name: &str,
    ) -> Result<(Tournament, bots::Bot)> {
        let tournament = self.tournament(tournament).await?;
        let row = bots::find(&self.pool, tournament.id, name).await?;
        let bot = row.ok_or_else(|| ServiceError::missing("bot", name))?;
        if principal.owns(&bot) {
            return Ok((tournament, bot));
        }
        Err(ServiceError::permission_denied(format!("{name} belongs to another player")))
    }
}
