//! Submissions: received, stored, and sent to their trial.
//!
//! A bundle is bytes here and nothing else. It goes from the network to a temporary file and from
//! there to the database, piece by piece, and from the database to workers; nothing in this crate
//! can read an archive, and what is in one is for a worker's sandbox to find out.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};

use arbiter_proto::ids::{TournamentId, VersionId};
use arbiter_proto::trace::Span;
use arbiter_proto::v1::submit_version_request::Part;
use arbiter_proto::v1::{Submission, SubmitVersionRequest, TrialStatus, Version};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tonic::{Request, Status, Streaming};

use super::freeze::submissions;
use super::status::{database, missing};
use super::{Shared, Viewer, Who, micros};
use crate::access::Role;
use crate::db::tournaments::Tournament;
use crate::db::trials::{Trial, TrialState};
use crate::db::{bots, tournaments, traces, trials, versions};

/// The largest bundle, in bytes.
const LARGEST: u64 = 64 << 20;
/// Pieces of a bundle that may wait to be written.
const AHEAD: usize = 4;
/// How many versions of one owner may wait for their trials.
const MOST_PENDING: i64 = 8;

/// A bundle that was received.
struct Received {
    file: File,
    size: u64,
    digest: [u8; 32],
}

/// Where a bot stands.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Its newest version that entered.
    pub(super) entered: Option<(VersionId, Version)>,
    /// Its newest version of all, if that has not entered.
    pub(super) pending: Option<Version>,
}

impl Shared {
    /// Takes a submission.
    pub(super) async fn submit(
        &self,
        request: Request<Streaming<SubmitVersionRequest>>,
    ) -> Result<Version, Status> {
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
        let tried = !submission.house && submissions(&tournament)?.preflight;
        if tried {
            self.check_quota(&who).await?;
        }
        let mut span = Span::begin("submit", None);
        span.set("tournament", tournament.name.clone());
        let bundle = receive(&mut parts).await?;
        let version = self.take(&who, &tournament, &submission, bundle, tried, &span).await;
        let version = version.inspect_err(|status| span.fail(status.message()))?;
        span.set("version", i64::from(version.number));
        tracing::info!(
            tournament = tournament.name,
            bot = submission.bot,
            version = version.number,
            trace_id = span.trace_id(),
            "submitted"
        );
        self.dispatcher.news();
        Ok(version)
    }

    /// Refuses one more version of an owner of whom too many wait.
    async fn check_quota(&self, who: &Who) -> Result<(), Status> {
        let pending = trials::pending(&self.pool, who.id).await.map_err(database)?;
        if pending < MOST_PENDING {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "{pending} of your versions wait for their trials, and no more than {MOST_PENDING} may"
        )))
    }

    /// Stores a bundle as the next version of a bot, which enters if it is new. The same bundle as
    /// that of the newest version is that version.
    async fn take(
        &self,
        who: &Who,
        tournament: &Tournament,
        submission: &Submission,
        bundle: Received,
        tried: bool,
        span: &Span,
    ) -> Result<Version, Status> {
        let Received { file, size, digest } = bundle;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let db = &mut *transaction;
        let now = self.now();
        let bot = self.entered(&mut *db, who, tournament.id, submission).await?;
        self.back(&mut *db, tournament, &bot, now).await?;
        let subject = |number: i32| format!("{} {} {number}", tournament.name, submission.bot);
        let newest = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        if let Some(same) = newest.first().filter(|version| version.digest == digest) {
            if let Some(reason) = bot.stood_down(same.id) {
                return Err(Status::failed_precondition(format!(
                    "{} version {} is stood down: {reason}; submit a better version, or ask an \
                    organiser to reinstate it",
                    bot.name, same.number
                )));
            }
            let trial = trials::get(&mut *db, same.id).await.map_err(database)?;
            self.note_in(&mut *db, who, "submit", &subject(same.number), None).await?;
            transaction.commit().await.map_err(database)?;
            return Ok(message(&bot, same, trial.as_ref(), Some(who)));
        }
        self.quota(&mut *db, tournament, bot.owner.filter(|_| !who.organises())).await?;
        // Not before: what is refused is not kept.
        versions::copy_bundle_in(&mut *db, &digest, size, file).await.map_err(database)?;
        let id = versions::submit(&mut *db, bot.id, &digest, now).await.map_err(database)?;
        if tried {
            trials::queue(&mut *db, id, now).await.map_err(database)?;
        } else {
            tournaments::changed(&mut *db, tournament.id, now).await.map_err(database)?;
        }
        if let Some(parent) = span.context() {
            traces::keep_version(&mut *db, id, &parent).await.map_err(database)?;
        }
        let trial = trials::get(&mut *db, id).await.map_err(database)?;
        let versions = versions::of_bot(&mut *db, bot.id).await.map_err(database)?;
        let submitted = versions.iter().find(|version| version.id == id);
        let submitted =
            submitted.ok_or_else(|| Status::internal("a version that was submitted is gone"))?;
        self.note_in(&mut *db, who, "submit", &subject(submitted.number), None).await?;
        transaction.commit().await.map_err(database)?;
        Ok(message(&bot, submitted, trial.as_ref(), Some(who)))
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

    /// Where a bot stands, as far as the viewer may see it.
    pub(super) async fn standing(
        &self,
        bot: &bots::Bot,
        viewer: &Viewer,
    ) -> Result<Standing, Status> {
        let mut standing = Standing::default();
        for version in versions::of_bot(&self.pool, bot.id).await.map_err(database)? {
            let trial = trials::get(&self.pool, version.id).await.map_err(database)?;
            let message = message(bot, &version, trial.as_ref(), viewer.0.as_ref());
            if trial.is_none_or(|trial| trial.state == TrialState::Passed) {
                standing.entered = Some((version.id, message));
                break;
            }
            standing.pending.get_or_insert(message);
        }
        Ok(standing)
    }

    /// A version of a bot: the newest, if the number is 0.
    pub(super) async fn version(
        &self,
        bot: &bots::Bot,
        number: i32,
    ) -> Result<versions::Version, Status> {
        let versions = versions::of_bot(&self.pool, bot.id).await.map_err(database)?;
        let mut versions = versions.into_iter();
        let found = versions.find(|version| number == 0 || version.number == number);
        found.ok_or_else(|| missing("version", format!("{} {number}", bot.name)))
    }

    /// The versions of a bot, the newest first, as far as the viewer may see them.
    pub(crate) async fn versions_of(
        &self,
        tournament: &str,
        bot: &str,
        viewer: &Viewer,
    ) -> Result<Vec<Version>, Status> {
        let tournament = self.tournament(tournament).await?;
        let found = bots::find(&self.pool, tournament.id, bot).await.map_err(database)?;
        let bot = found.ok_or_else(|| missing("bot", bot))?;
        let mut told = Vec::new();
        for version in versions::of_bot(&self.pool, bot.id).await.map_err(database)? {
            let trial = trials::get(&self.pool, version.id).await.map_err(database)?;
            told.push(message(&bot, &version, trial.as_ref(), viewer.0.as_ref()));
        }
        Ok(told)
    }

    /// How the trial of a version goes, or went, for its owner or an organiser.
    pub(super) async fn trial(
        &self,
        who: &Who,
        bot: &bots::Bot,
        number: i32,
    ) -> Result<TrialStatus, Status> {
        let version = self.version(bot, number).await?;
        let trial = trials::get(&self.pool, version.id).await.map_err(database)?;
        let told = Some(message(bot, &version, trial.as_ref(), Some(who)));
        let Some(trial) = trial else {
            return Ok(TrialStatus { version: told, ..TrialStatus::default() });
        };
        let ahead = match trial.state {
            TrialState::Waiting => trials::ahead(&self.pool, version.id).await.map_err(database)?,
            _ => 0,
        };
        Ok(TrialStatus {
            version: told,
            tried: true,
            ahead,
            evidence: trial.evidence.unwrap_or_default(),
            log: trial.log.unwrap_or_default(),
            figures: trial.figures.map(|figures| figures.to_string()).unwrap_or_default(),
            warnings: trial.warnings.unwrap_or_default(),
        })
    }
}

/// A version as a message. Why it failed is for its owner, why it could not be tried for organisers.
fn message(
    bot: &bots::Bot,
    version: &versions::Version,
    trial: Option<&Trial>,
    who: Option<&Who>,
) -> Version {
    let state = trial.map_or(TrialState::Passed, |trial| trial.state);
    let told = who.is_some_and(|who| match state {
        TrialState::Failed => who.owns(bot),
        TrialState::Aside => who.role.covers(Role::Organiser),
        TrialState::Waiting | TrialState::Leased | TrialState::Passed => false,
    });
    let verdict = trial.filter(|_| told).and_then(|trial| trial.verdict.clone());
    Version {
        bot: bot.name.clone(),
        number: version.number,
        digest: version.digest.clone(),
        submitted_at_us: micros(version.submitted_at),
        state: state.word().to_owned(),
        verdict: verdict.unwrap_or_default(),
    }
}

/// Receives a bundle into a file without a name.
async fn receive(parts: &mut Streaming<SubmitVersionRequest>) -> Result<Received, Status> {
    let (pieces, written) = mpsc::channel(AHEAD);
    let writing = tokio::task::spawn_blocking(move || write(written));
    let mut size = 0;
    while let Some(message) = parts.message().await? {
        let Some(Part::Bundle(piece)) = message.part else {
            return Err(Status::invalid_argument("after its opening a submission is its bundle"));
        };
        size += piece.len() as u64;
        if size > LARGEST {
            let error = format!(
                "the bundle is larger than {} MiB; leave out what the bot does not need",
                LARGEST >> 20
            );
            return Err(Status::invalid_argument(error));
        }
        if pieces.send(piece).await.is_err() {
            // The writer has failed, and says why.
            break;
        }
    }
    drop(pieces);
    if size == 0 {
        return Err(Status::invalid_argument("the bundle is empty"));
    }
    let written = writing.await.map_err(io::Error::other).flatten();
    let (file, digest) = written.map_err(|error| {
        tracing::error!(%error, "a bundle cannot be kept");
        Status::unavailable("the coordinator has no room for the bundle; try again later")
    })?;
    Ok(Received { file, size, digest })
}

/// Writes pieces to a file, and gives it from its beginning with the digest of all.
fn write(mut pieces: mpsc::Receiver<Vec<u8>>) -> io::Result<(File, [u8; 32])> {
    let (mut file, mut hasher) = (tempfile::tempfile()?, blake3::Hasher::new());
    while let Some(piece) = pieces.blocking_recv() {
        hasher.update(&piece);
        file.write_all(&piece)?;
    }
    file.rewind()?;
    Ok((file, hasher.finalize().into()))
}
