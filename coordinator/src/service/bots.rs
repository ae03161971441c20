//! Bots: their lists, versions and logs, and their withdrawal.

use std::collections::HashMap;

use arbiter_games::Game;
use arbiter_proto::ids::{MatchNumber, TournamentId};
use arbiter_proto::v1::{
    self, Bot, GetBotLogRequest, GetBotLogResponse, GetBotRequest, GetBotResponse, ListBotsRequest,
    ListBotsResponse, ListInvitedRequest, ListInvitedResponse, LogEntry, WithdrawBotRequest,
    WithdrawBotResponse,
};
use arbiter_ranking::Entrant;
use serde_json::json;

use super::leaderboard_freeze::freeze_notice;
use super::submissions::message;
use super::{Caller, Result, Service, ServiceError, change, match_name, micros};
use crate::access::Role;
use crate::db::bot_list::{self, BotSummary, TriedVersion};
use crate::db::bots;
use crate::db::entrants::{self, EntrantInfo};
use crate::db::forfeit_evidence::{self, Evidence};
use crate::db::played_matches::{self, LOG_WINDOW, PlayedMatch};
use crate::db::tournaments::{self, Tournament};
use crate::db::trials::TrialState;
use crate::db::versions;

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
        let handle = self.own_handle(caller).await?.unwrap_or_default();
        Ok(ListBotsResponse { bots, handle })
    }

    pub(crate) async fn list_invited(
        &self,
        caller: &Caller,
        ListInvitedRequest { tournament }: ListInvitedRequest,
    ) -> Result<ListInvitedResponse> {
        caller.require(Role::Organiser)?;
        let tournament = self.tournament(&tournament).await?;
        let players = bot_list::invited(&self.pool, tournament.id, self.now()).await?;
        let message = |player: bot_list::InvitedPlayer| v1::InvitedPlayer {
            name: player.name,
            invited_at_us: micros(player.created_at),
            last_used_at_us: player.used_at.map_or(0, micros),
            last_submitted_at_us: player.submitted_at.map_or(0, micros),
        };
        Ok(ListInvitedResponse { players: players.into_iter().map(message).collect() })
    }

    /// The number of bots that would play in the next edition.
    pub(crate) async fn entered_bots(&self, tournament: &str) -> Result<usize> {
        let tournament = self.tournament(tournament).await?;
        Ok(versions::entered_bots(&self.pool, tournament.id).await?.len())
    }

    pub(crate) async fn get_bot(
        &self,
        caller: &Caller,
        GetBotRequest { tournament, bot }: GetBotRequest,
    ) -> Result<GetBotResponse> {
        let tournament = self.tournament(&tournament).await?;
        let bot = self.bot(caller, tournament.id, &bot).await?;
        let row = self.bot_row(tournament.id, &bot).await?;
        let versions = bot_list::versions(&self.pool, row.bot.id).await?;
        let principal = caller.principal();
        let versions =
            versions.iter().map(|version| message(&row.bot, version, principal)).collect();
        Ok(GetBotResponse { bot: Some(bot_message(&row, caller)), versions })
    }

    pub(crate) async fn get_bot_log(
        &self,
        caller: &Caller,
        GetBotLogRequest { tournament, bot, limit, forfeits, before }: GetBotLogRequest,
    ) -> Result<GetBotLogResponse> {
        let principal = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(principal, &tournament, &bot).await?;
        let limit = if limit == 0 { DEFAULT_LINES } else { limit.min(MAX_LINES) };
        let editions = entrants::editions_of(&self.pool, bot.id).await?;
        let mut entrants: Vec<_> = editions.into_iter().map(|(_, entrant)| entrant).collect();
        entrants.sort_unstable();
        entrants.dedup();
        let before = Some(before).filter(|before| *before > 0);
        let before = before.map(|before| MatchNumber(i64::try_from(before).unwrap_or(i64::MAX)));
        let played = played_matches::of_entrants(
            &self.pool,
            tournament.id,
            &entrants,
            forfeits,
            limit,
            before,
            LOG_WINDOW,
        )
        .await?;
        let entries = self.log_entries(caller, &tournament, &bot, &played).await?;
        let row = self.bot_row(tournament.id, &bot).await?;
        let suspended_reason = row.suspension_reason().unwrap_or_default().to_owned();
        let game = tournament.game(self.games()).ok();
        let columns = game.map(|game| score_columns(&game, &entries)).unwrap_or_default();
        let hides_scores = self.visibility(&tournament, caller)?.frozen.is_some();
        let freeze_notice =
            if hides_scores { freeze_notice(&tournament, self.now()) } else { String::new() };
        Ok(GetBotLogResponse { entries, suspended_reason, columns, freeze_notice })
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
            let error = format!("the bot {} is already withdrawn", bot.name);
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::mark_changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(json!({"withdrawn": false}), json!({"withdrawn": true}));
        self.commit_change(transaction, principal, "withdraw", &subject, Some(detail)).await?;
        Ok(WithdrawBotResponse { bot: bot.name })
    }
}

/// A bot as a message. Its owner sees why it is suspended.
pub(super) fn bot_message(row: &BotSummary, caller: &Caller) -> Bot {
    let BotSummary { bot, owner, entered, pending, .. } = row;
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
        created_at_us: micros(bot.created_at),
        state: state(row).to_owned(),
    }
}

/// Whether a bot takes part, in one word.
fn state(row: &BotSummary) -> &'static str {
    if row.bot.withdrawn_at.is_some() {
        "withdrawn"
    } else if row.suspension_reason().is_some() {
        "suspended"
    } else {
        let newest = row.entered.as_ref().or(row.pending.as_ref());
        newest.map_or(TrialState::Waiting, |version| version.state).as_str()
    }
}

/// The names of the components of these scores. Empty if older rules gave scores of other lengths.
fn score_columns(game: &Game, entries: &[LogEntry]) -> Vec<String> {
    let length = game.columns.len();
    let fits = |entry: &LogEntry| entry.score.is_empty() || entry.score.len() == length;
    if !entries.iter().all(fits) {
        return Vec::new();
    }
    game.columns.iter().map(ToString::to_string).collect()
}

/// A match in the log of one of its bots. `entrants` describes the seats.
fn log_entry(
    tournament: &Tournament,
    bot: &bots::Bot,
    entrants: &HashMap<Entrant, EntrantInfo>,
    played: &PlayedMatch,
) -> LogEntry {
    let seats = &played.seats.0;
    let is_of_bot =
        |entrant: &Entrant| entrants.get(entrant).is_some_and(|info| info.bot == bot.id);
    let seat = seats.iter().position(is_of_bot).unwrap_or_default();
    let name = |entrant: &Entrant| entrants.get(entrant).map(|info| info.name.clone());
    LogEntry {
        r#match: match_name(tournament, played.result.number).to_string(),
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
    /// These matches in the log of one of their bots, without scores that the caller must not see.
    async fn log_entries(
        &self,
        caller: &Caller,
        tournament: &Tournament,
        bot: &bots::Bot,
        matches: &[PlayedMatch],
    ) -> Result<Vec<LogEntry>> {
        let mut seats: Vec<_> =
            matches.iter().flat_map(|played| played.seats.0.iter().copied()).collect();
        seats.sort_unstable();
        seats.dedup();
        let infos = entrants::of_seats(&self.pool, &seats).await?;
        let entrants: HashMap<_, _> = infos.into_iter().map(|info| (info.entrant, info)).collect();
        let numbers: Vec<_> = matches.iter().map(|played| played.result.number).collect();
        let evidence = forfeit_evidence::of_matches(&self.pool, tournament.id, &numbers).await?;
        let visibility = self.visibility(tournament, caller)?;
        let visible = self.visible_results(&visibility, tournament.id, &numbers).await?;
        let entries = matches.iter().map(|played| {
            let number = played.result.number;
            let mut entry = log_entry(tournament, bot, &entrants, played);
            let is_of_entry =
                |row: &&Evidence| row.number == number && u32::try_from(row.seat) == Ok(entry.seat);
            entry.evidence = evidence.iter().find(is_of_entry).map(evidence_message);
            if !visible.contains(&number) {
                entry.score.clear();
            }
            entry
        });
        Ok(entries.collect())
    }

    /// A bot with the state of its versions.
    async fn bot_row(&self, tournament: TournamentId, bot: &bots::Bot) -> Result<BotSummary> {
        let rows = bot_list::list(&self.pool, tournament, Some(bot.id)).await?;
        rows.into_iter().next().ok_or_else(|| ServiceError::missing("bot", &bot.name))
    }
}
