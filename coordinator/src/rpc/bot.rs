//! Bots: submitted, listed, withdrawn.

use arbiter_proto::ids::{EditionId, Entrant, MatchId, TournamentId};
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{
    self, Bot, GetLogRequest, GetLogResponse, ListBotsRequest, ListBotsResponse, LogLine,
    ReinstateBotRequest, ReinstateBotResponse, Submission, SubmitVersionRequest, Version,
    WithdrawBotRequest, WithdrawBotResponse,
};
use sqlx::PgConnection;
use tonic::{Request, Response, Status, Streaming};

use super::freeze::Sight;
use super::status::{database, missing};
use super::{Shared, Viewer, Who, micros};
use crate::access::Role;
use crate::db::entrants::{self, Roster};
use crate::db::evidence::{self, Evidence};
use crate::db::played::{self, PlayedMatch};
use crate::db::tournaments::Tournament;
use crate::db::{bots, editions, tokens, tournaments, versions};

/// The largest bundle, in bytes.
const LARGEST: usize = 64 << 20;
/// Lines of a log where none are asked for, and at most.
const LINES: (u32, u32) = (100, 1000);

#[tonic::async_trait]
impl BotService for Shared {
    async fn submit_version(
        &self,
        request: Request<Streaming<SubmitVersionRequest>>,
    ) -> Result<Response<Version>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let mut parts = request.into_inner();
        let first = parts.message().await?.and_then(|message| message.part);
        let Some(Part::Submission(submission)) = first else {
            return Err(Status::invalid_argument("a submission opens with what it is of"));
        };
        if submission.house && !who.role.covers(Role::Organiser) {
            return Err(Status::permission_denied("house bots are submitted by organisers"));
        }
        let tournament = self.tournament(&submission.tournament).await?;
        self.entry(&who, &tournament, submission.house)?;
        let bundle = receive(&mut parts).await?;
        let version = self.take(&who, &tournament, &submission, &bundle).await?;
        Ok(Response::new(message(&submission.bot, &version)))
    }

    async fn list_bots(
        &self,
        request: Request<ListBotsRequest>,
    ) -> Result<Response<ListBotsResponse>, Status> {
        let viewer = self.viewer(&request).await?;
        let tournament = self.tournament(&request.into_inner().tournament).await?;
        let owners = tokens::list(&self.pool).await.map_err(database)?;
        let mut listed = Vec::new();
        for bot in bots::list(&self.pool, tournament.id).await.map_err(database)? {
            let newest = versions::of_bot(&self.pool, bot.id).await.map_err(database)?;
            let owner = owners.iter().find(|token| Some(token.id.0) == bot.owner);
            let newest = newest.first();
            let reason = newest.and_then(|version| bot.stood_down(version.id));
            listed.push(Bot {
                own: viewer.is(bot.owner),
                stood_down: reason.is_some(),
                reason: reason.filter(|_| viewer.minds(bot.owner)).unwrap_or_default().to_owned(),
                owner: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
                withdrawn: bot.withdrawn_at.is_some(),
                newest: newest.map(|version| message(&bot.name, version)),
                name: bot.name,
            });
        }
        Ok(Response::new(ListBotsResponse { bots: listed }))
    }

    async fn get_log(
        &self,
        request: Request<GetLogRequest>,
    ) -> Result<Response<GetLogResponse>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let GetLogRequest { tournament, bot, limit } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let bot = self.own(&who, tournament.id, &bot).await?;
        let limit = if limit == 0 { LINES.0 } else { limit.min(LINES.1) };
        let sight = self.sight(&tournament, &Viewer(Some(who)))?;
        let mut lines = Vec::new();
        for (edition, entrant) in
            entrants::editions_of(&self.pool, bot.id).await.map_err(database)?
        {
            let room = limit as usize - lines.len();
            lines.extend(self.log_of(edition, entrant, room, &sight).await?);
            if lines.len() == limit as usize {
                break;
            }
        }
        let newest = versions::of_bot(&self.pool, bot.id).await.map_err(database)?;
        let reason = newest.first().and_then(|version| bot.stood_down(version.id));
        let stood_down = reason.unwrap_or_default().to_owned();
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
        // Organisers may take anybody out at any time.
        self.entry(&who, &tournament, true)?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let db = &mut *transaction;
        if !bots::withdraw(&mut *db, bot.id, self.now()).await.map_err(database)? {
            let error = format!("{} was withdrawn before", bot.name);
            return Err(Status::failed_precondition(error));
        }
        tournaments::changed(&mut *db, tournament.id, self.now()).await.map_err(database)?;
        let subject = format!("{} {}", tournament.name, bot.name);
        self.note_in(&mut *db, &who, "withdraw", &subject, None).await?;
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

/// Receives a bundle.
async fn receive(parts: &mut Streaming<SubmitVersionRequest>) -> Result<Vec<u8>, Status> {
    let mut bundle = Vec::new();
    while let Some(message) = parts.message().await? {
        let Some(Part::Bundle(piece)) = message.part else {
            return Err(Status::invalid_argument("after its opening a submission is its bundle"));
        };
        if bundle.len() + piece.len() > LARGEST {
            let error = format!(
                "the bundle is larger than {} MiB; leave out what the bot does \
                not need to run",
                LARGEST >> 20
            );
            return Err(Status::resource_exhausted(error));
        }
        bundle.extend_from_slice(&piece);
    }
    if bundle.is_empty() {
        return Err(Status::invalid_argument("the bundle is empty"));
    }
    Ok(bundle)
}

/// A version as a message.
fn message(bot: &str, version: &versions::Version) -> Version {
    Version {
        bot: bot.to_owned(),
        number: version.number,
        digest: version.digest.clone(),
        submitted_at_us: micros(version.submitted_at),
    }
}

impl Shared {
    /// The matches of an entrant, the last first, so many at most.
    async fn log_of(
        &self,
        edition: EditionId,
        entrant: Entrant,
        room: usize,
        sight: &Sight,
    ) -> Result<Vec<LogLine>, Status> {
        let roster = Roster::of(&self.pool, edition).await.map_err(database)?;
        let found = editions::get(&self.pool, edition).await.map_err(database)?;
        let shown = found.is_some_and(|edition| sight.shows(&edition));
        let mut matches =
            played::of_entrant(&self.pool, edition, entrant).await.map_err(database)?;
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

    /// Stores a bundle as the next version of a bot, which enters if it is new. The same bundle as
    /// that of the newest version is that version.
    async fn take(
        &self,
        who: &Who,
        tournament: &Tournament,
        submission: &Submission,
        bundle: &[u8],
    ) -> Result<versions::Version, Status> {
        let digest: [u8; 32] = blake3::hash(bundle).into();
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let db = &mut *transaction;
        let bot = self.entered(&mut *db, who, tournament.id, submission).await?;
        let now = self.now();
        self.back(&mut *db, tournament, &bot, now).await?;
        let subject = |number: i32| format!("{} {} {number}", tournament.name, submission.bot);
        let newest = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        if let Some(same) = newest.into_iter().next().filter(|version| version.digest == digest) {
            self.note_in(&mut *db, who, "submit", &subject(same.number), None).await?;
            transaction.commit().await.map_err(database)?;
            return Ok(same);
        }
        self.quota(&mut *db, tournament, bot.owner.filter(|_| !who.organises())).await?;
        versions::store_bundle(&mut *db, &digest, bundle).await.map_err(database)?;
        versions::submit(&mut *db, bot.id, &digest, now).await.map_err(database)?;
        let versions = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        let submitted = versions.into_iter().next();
        let submitted = submitted
            .ok_or_else(|| Status::internal("a version that was submitted is not there"))?;
        tournaments::changed(&mut *db, tournament.id, now).await.map_err(database)?;
        self.note_in(&mut *db, who, "submit", &subject(submitted.number), None).await?;
        transaction.commit().await.map_err(database)?;
        Ok(submitted)
    }

    /// The bot that is submitted, which enters if it is new.
    async fn entered(
        &self,
        db: &mut PgConnection,
        who: &Who,
        tournament: TournamentId,
        submission: &Submission,
    ) -> Result<bots::Bot, Status> {
        let name = &submission.bot;
        let found = bots::find(&mut *db, tournament, name).await.map_err(database)?;
        let Some(bot) = found else {
            name.parse::<arbiter_games::BotName>()
                .map_err(|error| Status::invalid_argument(error.to_string()))?;
            let owner = (!submission.house).then_some(who.id);
            let now = self.now();
            bots::create(&mut *db, tournament, owner, name, now).await.map_err(database)?;
            let entered = bots::find(&mut *db, tournament, name).await.map_err(database)?;
            return entered.ok_or_else(|| Status::internal("a bot that entered is not there"));
        };
        if submission.house != bot.owner.is_none() || !who.owns(&bot) {
            let error = format!("the name {name} is taken by somebody else's bot; choose another");
            return Err(Status::permission_denied(error));
        }
        Ok(bot)
    }

    /// A bot of the caller's.
    async fn own(
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
