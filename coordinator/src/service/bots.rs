//! Bots: submitted, listed, withdrawn.

use arbiter_proto::ids::{EditionId, MatchId, TournamentId};
use arbiter_proto::v1::{
    self, Bot, GetBotLogRequest, GetBotLogResponse, GetBotRequest, GetBotResponse, ListBotsRequest,
    ListBotsResponse, LogEntry, Version, WithdrawBotRequest, WithdrawBotResponse,
};
use arbiter_ranking::Entrant;
use serde_json::json;

use super::submissions::message;
use super::visibility::Sight;
use super::{Caller, Principal, Result, Service, ServiceError, change};
use crate::access::Role;
use crate::db::bot_list::{self, Listed, Tried};
use crate::db::entrants::{self, Roster};
use crate::db::evidence::{self, Evidence};
use crate::db::played_matches::{self, PlayedMatch};
use crate::db::tournaments::{self, Tournament};
use crate::db::{bots, editions};

/// Lines of a log where none are asked for, and at most.
const LINES: (u32, u32) = (100, 1000);

impl Service {
    pub(crate) async fn list_bots(
        &self,
        caller: &Caller,
        request: ListBotsRequest,
    ) -> Result<ListBotsResponse> {
        let tournament = self.tournament(&request.tournament).await?;
        let found = bot_list::list(&self.pool, tournament.id, None).await?;
        let bots = found.iter().map(|found| told(found, caller)).collect();
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
        Ok(GetBotResponse { bot: Some(told(&found, caller)), versions })
    }

    /// The versions of a bot, the newest first, as far as the caller may see them.
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
        let (tournament, bot) = self.own(who, &tournament, &bot).await?;
        let limit = if limit == 0 { LINES.0 } else { limit.min(LINES.1) };
        let sight = self.sight(&tournament, caller)?;
        let mut lines = Vec::new();
        for (edition, entrant) in entrants::editions_of(&self.pool, bot.id).await? {
            let room = limit as usize - lines.len();
            lines.extend(self.log_of((edition, entrant), forfeits, room, &sight).await?);
            if lines.len() == limit as usize {
                break;
            }
        }
        let listed = self.listed(tournament.id, &bot.name).await?;
        let stood_down = listed.stood_down().unwrap_or_default().to_owned();
        Ok(GetBotLogResponse { entries: lines, suspended_reason: stood_down })
    }

    pub(crate) async fn withdraw_bot(
        &self,
        caller: &Caller,
        WithdrawBotRequest { tournament, bot }: WithdrawBotRequest,
    ) -> Result<WithdrawBotResponse> {
        let who = caller.require(Role::Player)?;
        let (tournament, bot) = self.own(who, &tournament, &bot).await?;
        self.entry_of_bot(who, &tournament, &bot).await?;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        if !bots::withdraw(&mut *db, bot.id, self.now()).await? {
            let error = format!("{} was withdrawn before", bot.name);
            return Err(ServiceError::failed_precondition(error));
        }
        tournaments::changed(&mut *db, tournament.id, self.now()).await?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(&json!({"withdrawn": false}), &json!({"withdrawn": true}));
        self.note_in(&mut *db, who, "withdraw", &subject, Some(&detail)).await?;
        transaction.commit().await?;
        Ok(WithdrawBotResponse {})
    }
}

/// A bot as a message: who owns it is told why it was stood down.
fn told(found: &Listed, caller: &Caller) -> Bot {
    let Listed { bot, owner, entered, pending } = found;
    let reason = found.stood_down();
    let version =
        |tried: &Option<Tried>| tried.as_ref().map(|tried| message(bot, tried, caller.principal()));
    Bot {
        name: bot.name.clone(),
        owner: owner.clone().unwrap_or_default(),
        withdrawn: bot.withdrawn_at.is_some(),
        owned_by_caller: caller.is(bot.owner),
        suspended: reason.is_some(),
        suspended_reason: reason.filter(|_| caller.minds(bot.owner)).unwrap_or_default().to_owned(),
        newest: version(entered),
        pending: version(pending),
    }
}

/// A match in the log of one of its entrants.
fn line(edition: EditionId, whose: Entrant, roster: &Roster, played: &PlayedMatch) -> LogEntry {
    let seats = &played.seats.0;
    let seat = seats.iter().position(|entrant| *entrant == whose).unwrap_or_default();
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
pub(super) fn why_message(evidence: &Evidence) -> v1::Evidence {
    let Evidence { detail, wall_us, cpu_us, .. } = evidence;
    v1::Evidence { detail: detail.clone(), wall_us: *wall_us, cpu_us: *cpu_us }
}

impl Service {
    /// The matches of an entrant, or those that it forfeited, the last first, so many at most.
    async fn log_of(
        &self,
        (edition, entrant): (EditionId, Entrant),
        forfeits: bool,
        room: usize,
        sight: &Sight,
    ) -> Result<Vec<LogEntry>> {
        let roster = Roster::of(&self.pool, edition).await?;
        let found = editions::get(&self.pool, edition).await?;
        let shown = found.is_some_and(|edition| sight.shows(&edition));
        let mut matches =
            played_matches::of_entrant(&self.pool, edition, entrant, forfeits).await?;
        matches.truncate(room);
        let numbers: Vec<_> = matches.iter().map(|played| played.result.number).collect();
        let evidence = evidence::of_matches(&self.pool, edition, &numbers).await?;
        let lines = matches.iter().map(|played| {
            let mut line = line(edition, entrant, &roster, played);
            let why = |why: &&Evidence| {
                why.number == played.result.number && u32::try_from(why.seat) == Ok(line.seat)
            };
            line.evidence = evidence.iter().find(why).map(why_message);
            if !shown {
                line.score.clear();
            }
            line
        });
        Ok(lines.collect())
    }

    /// A bot, with where its versions stand.
    async fn listed(&self, tournament: TournamentId, name: &str) -> Result<Listed> {
        let found = bots::find(&self.pool, tournament, name).await?;
        let only = found.map(|bot| bot.id).ok_or_else(|| ServiceError::missing("bot", name))?;
        let listed = bot_list::list(&self.pool, tournament, Some(only)).await?;
        listed.into_iter().next().ok_or_else(|| ServiceError::missing("bot", name))
    }

    /// A bot of the caller's, and its tournament.
    pub(super) async fn own(
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
        Err(ServiceError::permission_denied(format!("{name} is somebody else's bot")))
    }
}
