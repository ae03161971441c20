//! Bots: submitted, listed, withdrawn.

use arbiter_proto::ids::{EditionId, Entrant, MatchId, TournamentId};
use arbiter_proto::v1::bot_service_server::BotService;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{
    Bot, GetLogRequest, GetLogResponse, ListBotsRequest, ListBotsResponse, LogLine, Submission,
    SubmitVersionRequest, Version, WithdrawBotRequest, WithdrawBotResponse,
};
use sqlx::PgConnection;
use tonic::{Request, Response, Status, Streaming};

use super::status::{database, missing};
use super::{Shared, Who, micros};
use crate::access::Role;
use crate::db::entrants::{self, Roster};
use crate::db::played::{self, PlayedMatch};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::{bots, tokens, tournaments, versions};

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
        if tournament.state != TournamentState::Open {
            let error = format!("tournament {} is over: no bot can enter", tournament.name);
            return Err(Status::failed_precondition(error));
        }
        let bundle = receive(&mut parts).await?;
        let version = self.take(&who, &tournament, &submission, &bundle).await?;
        let subject = format!("{} {} {}", tournament.name, submission.bot, version.number);
        self.note(&who, "submit", &subject).await?;
        Ok(Response::new(message(&submission.bot, &version)))
    }

    async fn list_bots(
        &self,
        request: Request<ListBotsRequest>,
    ) -> Result<Response<ListBotsResponse>, Status> {
        let tournament = self.tournament(&request.into_inner().tournament).await?;
        let owners = tokens::list(&self.pool).await.map_err(database)?;
        let mut listed = Vec::new();
        for bot in bots::list(&self.pool, tournament.id).await.map_err(database)? {
            let newest = versions::of_bot(&self.pool, bot.id).await.map_err(database)?;
            let owner = owners.iter().find(|token| Some(token.id.0) == bot.owner);
            listed.push(Bot {
                owner: owner.map(|owner| owner.name.clone()).unwrap_or_default(),
                withdrawn: bot.withdrawn_at.is_some(),
                newest: newest.first().map(|version| message(&bot.name, version)),
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
        let mut lines = Vec::new();
        for (edition, entrant) in
            entrants::editions_of(&self.pool, bot.id).await.map_err(database)?
        {
            let roster = Roster::of(&self.pool, edition).await.map_err(database)?;
            let matches = played::of_entrant(&self.pool, edition, entrant).await;
            let room = limit as usize - lines.len();
            let matches = matches.map_err(database)?;
            lines.extend(
                matches.iter().take(room).map(|played| line(edition, entrant, &roster, played)),
            );
            if lines.len() == limit as usize {
                break;
            }
        }
        Ok(Response::new(GetLogResponse { lines }))
    }

    async fn withdraw_bot(
        &self,
        request: Request<WithdrawBotRequest>,
    ) -> Result<Response<WithdrawBotResponse>, Status> {
        let who = self.admit(&request, Role::Player).await?;
        let WithdrawBotRequest { tournament, bot } = request.into_inner();
        let tournament = self.tournament(&tournament).await?;
        let bot = self.own(&who, tournament.id, &bot).await?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        if !bots::withdraw(&mut *transaction, bot.id, self.now()).await.map_err(database)? {
            let error = format!("{} was withdrawn before", bot.name);
            return Err(Status::failed_precondition(error));
        }
        let changed = tournaments::changed(&mut *transaction, tournament.id, self.now()).await;
        changed.map_err(database)?;
        transaction.commit().await.map_err(database)?;
        self.note(&who, "withdraw", &format!("{} {}", tournament.name, bot.name)).await?;
        Ok(Response::new(WithdrawBotResponse {}))
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
    }
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
        let newest = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        if let Some(same) = newest.into_iter().next().filter(|version| version.digest == digest) {
            return Ok(same);
        }
        versions::store_bundle(&mut *db, &digest, bundle).await.map_err(database)?;
        versions::submit(&mut *db, bot.id, &digest, self.now()).await.map_err(database)?;
        let versions = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        tournaments::changed(&mut *db, tournament.id, self.now()).await.map_err(database)?;
        transaction.commit().await.map_err(database)?;
        let submitted = versions.into_iter().next();
        submitted.ok_or_else(|| Status::internal("a version that was submitted is not there"))
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
        if bot.withdrawn_at.is_some() {
            let error = format!("{name} was withdrawn; submit it under another name");
            return Err(Status::failed_precondition(error));
        }
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
