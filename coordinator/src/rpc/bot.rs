//! Bots: submitted, listed, withdrawn.

use arbiter_proto::ids::{EditionId, Entrant, MatchId, TournamentId};
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::{
    self, Bot, GetBotRequest, GetBotResponse, GetLogRequest, GetLogResponse, GetTrialRequest,
    ListBotsRequest, ListBotsResponse, LogLine, ReinstateBotRequest, ReinstateBotResponse,
    RetryTrialRequest, SubmitVersionRequest, TrialStatus, Version, WithdrawBotRequest,
    WithdrawBotResponse,
};
use serde_json::json;
use tonic::{Request, Response, Status, Streaming};

use super::freeze::Sight;
use super::status::{database, missing};
use super::submission::message;
use super::{Shared, Viewer, Who, change};
use crate::access::Role;
use crate::db::entrants::{self, Roster};
use crate::db::evidence::{self, Evidence};
use crate::db::listed::{self, Listed, Tried};
use crate::db::played::{self, PlayedMatch};
use crate::db::{bots, editions, tournaments};

/// Lines of a log where none are asked for, and at most.
const LINES: (u32, u32) = (100, 1000);

#[tonic::async_trait]
impl BotService for Shared {
    async fn submit_version(
        &self,
        request: Request<Streaming<SubmitVersionRequest>>,
    ) -> Result<Response<Version>, Status> {
        self.submit(request).await.map(Response::new)
    }

    async fn list_bots(
        &self,
        request: Request<ListBotsRequest>,
    ) -> Result<Response<ListBotsResponse>, Status> {
        let viewer = self.viewer(&request).await?;
        let tournament = self.tournament(&request.into_inner().tournament).await?;
        let found = listed::list(&self.pool, tournament.id, None).await.map_err(database)?;
        let bots = found.iter().map(|found| told(found, &viewer)).collect();
        Ok(Response::new(ListBotsResponse { bots }))
    }

    async fn get_bot(
        &self,
        request: Request<GetBotRequest>,
    ) -> Result<Response<GetBotResponse>, Status> {
        let viewer = self.viewer(&request).await?;
        let GetBotRequest { tournament, bot } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let found = self.listed(tournament.id, &bot).await?;
        let versions = listed::versions(&self.pool, found.bot.id).await.map_err(database)?;
        let who = viewer.0.as_ref();
        let versions = versions.iter().map(|tried| message(&found.bot, tried, who)).collect();
        Ok(Response::new(GetBotResponse { bot: Some(told(&found, &viewer)), versions }))
    }

    async fn get_trial(
        &self,
        request: Request<GetTrialRequest>,
    ) -> Result<Response<TrialStatus>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let GetTrialRequest { tournament, bot, number } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let bot = self.own(&who, tournament.id, &bot).await?;
        self.trial(&who, &bot, number).await.map(Response::new)
    }

    async fn retry_trial(
        &self,
        request: Request<RetryTrialRequest>,
    ) -> Result<Response<TrialStatus>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        self.retry(&who, request.into_inner()).await.map(Response::new)
    }

    async fn get_log(
        &self,
        request: Request<GetLogRequest>,
    ) -> Result<Response<GetLogResponse>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let GetLogRequest { tournament, bot, limit, forfeits } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let bot = self.own(&who, tournament.id, &bot).await?;
        let limit = if limit == 0 { LINES.0 } else { limit.min(LINES.1) };
        let viewer = Viewer(Some(who));
        let sight = self.sight(&tournament, &viewer)?;
        let mut lines = Vec::new();
        for (edition, entrant) in
            entrants::editions_of(&self.pool, bot.id).await.map_err(database)?
        {
            let room = limit as usize - lines.len();
            lines.extend(self.log_of((edition, entrant), forfeits, room, &sight).await?);
            if lines.len() == limit as usize {
                break;
            }
        }
        let listed = self.listed(tournament.id, &bot.name).await?;
        let stood_down = listed.stood_down().unwrap_or_default().to_owned();
        Ok(Response::new(GetLogResponse { lines, stood_down }))
    }

    async fn withdraw_bot(
        &self,
        request: Request<WithdrawBotRequest>,
    ) -> Result<Response<WithdrawBotResponse>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let WithdrawBotRequest { tournament, bot } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let bot = self.own(&who, tournament.id, &bot).await?;
        self.entry_of_bot(&who, &tournament, &bot).await?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let db = &mut *transaction;
        if !bots::withdraw(&mut *db, bot.id, self.now()).await.map_err(database)? {
            let error = format!("{} was withdrawn before", bot.name);
            return Err(Status::failed_precondition(error));
        }
        tournaments::changed(&mut *db, tournament.id, self.now()).await.map_err(database)?;
        let subject = format!("{} {}", tournament.name, bot.name);
        let detail = change(&json!({"withdrawn": false}), &json!({"withdrawn": true}));
        self.note_in(&mut *db, &who, "withdraw", &subject, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        Ok(Response::new(WithdrawBotResponse {}))
    }

    async fn reinstate_bot(
        &self,
        request: Request<ReinstateBotRequest>,
    ) -> Result<Response<ReinstateBotResponse>, Status> {
        let who = self.admit(&request, Role::Organiser).await?;
        self.reinstate(&who, request.get_ref()).await?;
        Ok(Response::new(ReinstateBotResponse {}))
    }
}

/// A bot as a message: who owns it is told why it was stood down.
fn told(found: &Listed, viewer: &Viewer) -> Bot {
    let Listed { bot, owner, entered, pending } = found;
    let reason = found.stood_down();
    let version =
        |tried: &Option<Tried>| tried.as_ref().map(|tried| message(bot, tried, viewer.0.as_ref()));
    Bot {
        name: bot.name.clone(),
        owner: owner.clone().unwrap_or_default(),
        withdrawn: bot.withdrawn_at.is_some(),
        own: viewer.is(bot.owner),
        stood_down: reason.is_some(),
        reason: reason.filter(|_| viewer.minds(bot.owner)).unwrap_or_default().to_owned(),
        newest: version(entered),
        pending: version(pending),
    }
}

/// A match in the log of one of its entrants.
fn line(edition: EditionId, whose: Entrant, roster: &Roster, played: &PlayedMatch) -> LogLine {
    let seats = &played.seats.0;
    let seat = seats.iter().position(|entrant| *entrant == whose).unwrap_or_default();
    let name = |entrant: &Entrant| roster.get(*entrant).map(|named| named.name.clone());
    LogLine {
        r#match: MatchId { edition, number: played.number }.to_string(),
        seat: u32::try_from(seat + 1).unwrap_or(u32::MAX),
        bots: seats.iter().filter_map(name).collect(),
        score: played.score(seat).to_vec(),
        forfeit: played.forfeit(seat).map(|kind| kind.word().to_owned()).unwrap_or_default(),
        evidence: None,
    }
}

/// Why a seat forfeited, as a message.
pub(super) fn why_message(evidence: &Evidence) -> v1::Evidence {
    let Evidence { detail, wall_us, cpu_us, .. } = evidence;
    v1::Evidence { detail: detail.clone(), wall_us: *wall_us, cpu_us: *cpu_us }
}

impl Shared {
    /// The matches of an entrant, or those that it forfeited, the last first, so many at most.
    async fn log_of(
        &self,
        (edition, entrant): (EditionId, Entrant),
        forfeits: bool,
        room: usize,
        sight: &Sight,
    ) -> Result<Vec<LogLine>, Status> {
        let roster = Roster::of(&self.pool, edition).await.map_err(database)?;
        let found = editions::get(&self.pool, edition).await.map_err(database)?;
        let shown = found.is_some_and(|edition| sight.shows(&edition));
        let mut matches =
            played::of_entrant(&self.pool, edition, entrant, forfeits).await.map_err(database)?;
        matches.truncate(room);
        let numbers: Vec<_> = matches.iter().map(|played| played.number).collect();
        let evidence = evidence::of_matches(&self.pool, edition, &numbers).await;
        let evidence = evidence.map_err(database)?;
        let lines = matches.iter().map(|played| {
            let mut line = line(edition, entrant, &roster, played);
            let why = |why: &&Evidence| {
                why.number == played.number && u32::try_from(why.seat) == Ok(line.seat)
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
    async fn listed(&self, tournament: TournamentId, name: &str) -> Result<Listed, Status> {
        let found = bots::find(&self.pool, tournament, name).await.map_err(database)?;
        let only = found.map(|bot| bot.id).ok_or_else(|| missing("bot", name))?;
        let listed = listed::list(&self.pool, tournament, Some(only)).await.map_err(database)?;
        listed.into_iter().next().ok_or_else(|| missing("bot", name))
    }

    /// A bot of the caller's.
    pub(super) async fn own(
        &self,
        who: &Who,
        tournament: TournamentId,
        name: &str,
    ) -> Result<bots::Bot, Status> {
        let found = bots::find(&self.pool, tournament, name).await.map_err(database)?;
        let bot = found.ok_or_else(|| missing("bot", name))?;
        if who.owns(&bot) {
            return Ok(bot);
        }
        Err(Status::permission_denied(format!("{name} is somebody else's bot")))
    }
}
