//! Submissions: received, stored, and sent to their trial.
//!
//! A bundle is bytes here and nothing else. It goes from the network to a temporary file and from
//! there to the database, piece by piece, and from the database to workers; nothing in this crate
//! can read an archive, and what is in one is for a worker's sandbox to find out.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::pin::pin;

use arbiter_proto::ids::TournamentId;
use arbiter_proto::trace::Span;
use arbiter_proto::v1::{Submission, Version};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt as _};

use super::entry_policy::entry_of_version;
use super::visibility::submissions;
use super::{Caller, Principal, Result, Service, ServiceError, micros};
use crate::access::Role;
use crate::database_clock;
use crate::db::bot_list::{self, Tried};
use crate::db::tournaments::Tournament;
use crate::db::trials::TrialState;
use crate::db::{bots, tokens, tournaments, trace_contexts, trials, versions};

/// The largest bundle, in bytes.
pub(crate) const LARGEST: usize = 64 << 20;
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

impl Service {
    /// Takes a submission whose bundle comes in pieces, however they come. None of them is asked
    /// for before it is known that there may be a submission.
    pub(crate) async fn submit_version(
        &self,
        caller: &Caller,
        submission: &Submission,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<Version> {
        let who = caller.require(Role::Player)?;
        if submission.house && !who.role.covers(Role::Organiser) {
            return Err(ServiceError::permission_denied("house bots are submitted by organisers"));
        }
        let tournament = self.tournament(&submission.tournament).await?;
        entry_of_version(who, &tournament, submission.house, self.now())?;
        let tried = !submission.house && submissions(&tournament)?.preflight;
        if tried {
            self.check_quota(&mut *self.pool.acquire().await?, who).await?;
        }
        let mut span = Span::begin("submit", None);
        span.set("tournament", tournament.name.clone());
        let bundle = receive(pieces).await?;
        let version = self.take(who, &tournament, submission, bundle, tried, &span).await;
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
    async fn check_quota(&self, db: &mut PgConnection, who: &Principal) -> Result<()> {
        let pending = trials::pending(db, who.id).await?;
        if pending < MOST_PENDING {
            return Ok(());
        }
        Err(ServiceError::resource_exhausted(format!(
            "{pending} of your versions wait for their trials, and no more than {MOST_PENDING} may"
        )))
    }

    /// Refuses a version whose bundle has arrived too late: entry has closed meanwhile, or the token
    /// has ended. Other submissions of the same owner wait until this one is stored or refused, so that
    /// together they keep to what one owner may submit. The tournament as it is by now.
    async fn may_still_enter(
        &self,
        db: &mut PgConnection,
        who: &Principal,
        tournament: TournamentId,
        submission: &Submission,
    ) -> Result<Tournament> {
        tokens::submit_alone(&mut *db, who.id).await?;
        if !tokens::is_good(&mut *db, who.id).await? {
            return Err(ServiceError::token_ended());
        }
        let found = tournaments::get(&mut *db, tournament).await?;
        let found =
            found.ok_or_else(|| ServiceError::missing("tournament", &submission.tournament))?;
        let now = database_clock::read(db).await?.at;
        entry_of_version(who, &found, submission.house, now)?;
        Ok(found)
    }

    /// Stores a bundle as the next version of a bot, which enters if it is new. The same bundle as
    /// that of the newest version is that version.
    async fn take(
        &self,
        who: &Principal,
        tournament: &Tournament,
        submission: &Submission,
        bundle: Received,
        tried: bool,
        span: &Span,
    ) -> Result<Version> {
        let Received { file, size, digest } = bundle;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let now = self.now();
        let tournament = &self.may_still_enter(&mut *db, who, tournament.id, submission).await?;
        if tried {
            self.check_quota(&mut *db, who).await?;
        }
        let bot = self.entered(&mut *db, who, tournament.id, submission).await?;
        self.back(&mut *db, tournament, &bot, now).await?;
        let subject = |number: i32| format!("{} {} {number}", tournament.name, submission.bot);
        let newest = bot_list::versions(&mut *db, bot.id).await?;
        if let Some(same) = newest.first().filter(|newest| newest.version.digest == digest) {
            let number = same.version.number;
            if let Some(reason) = bot.stood_down(same.version.id) {
                return Err(ServiceError::failed_precondition(format!(
                    "{} version {number} is stood down: {reason}; submit a better version, or ask \
                    an organiser to reinstate it",
                    bot.name
                )));
            }
            self.note_in(&mut *db, who, "submit", &subject(number), None).await?;
            transaction.commit().await?;
            return Ok(message(&bot, same, Some(who)));
        }
        self.quota(&mut *db, tournament, bot.owner.filter(|_| !who.organises())).await?;
        // Not before: what is refused is not kept.
        versions::copy_bundle_in(&mut *db, &digest, size, file).await?;
        let id = versions::submit(&mut *db, bot.id, &digest, now).await?;
        if tried {
            trials::queue(&mut *db, id).await?;
        } else {
            tournaments::changed(&mut *db, tournament.id, now).await?;
        }
        if let Some(parent) = span.context() {
            trace_contexts::keep_version(&mut *db, id, &parent).await?;
        }
        let versions = bot_list::versions(&mut *db, bot.id).await?;
        let submitted = versions.iter().find(|found| found.version.id == id);
        let submitted = submitted
            .ok_or_else(|| ServiceError::internal("a version that was submitted is gone"))?;
        let number = submitted.version.number;
        self.note_in(&mut *db, who, "submit", &subject(number), None).await?;
        transaction.commit().await?;
        Ok(message(&bot, submitted, Some(who)))
    }

    /// The bot that is submitted, which enters if it is new.
    async fn entered(
        &self,
        db: &mut PgConnection,
        who: &Principal,
        tournament: TournamentId,
        submission: &Submission,
    ) -> Result<bots::Bot> {
        let name = &submission.bot;
        let found = bots::find(&mut *db, tournament, name).await?;
        let Some(bot) = found else {
            name.parse::<arbiter_games::BotName>()
                .map_err(|error| ServiceError::invalid_argument(error.to_string()))?;
            let owner = (!submission.house).then_some(who.id);
            let now = self.now();
            bots::create(&mut *db, tournament, owner, name, now).await?;
            let entered = bots::find(&mut *db, tournament, name).await?;
            return entered
                .ok_or_else(|| ServiceError::internal("a bot that entered is not there"));
        };
        if submission.house != bot.owner.is_none() || !who.owns(&bot) {
            let error = format!("the name {name} is taken by somebody else's bot; choose another");
            return Err(ServiceError::permission_denied(error));
        }
        Ok(bot)
    }
}

/// A version as a message. Why it failed is for its owner, why it could not be tried for organisers.
pub(super) fn message(bot: &bots::Bot, tried: &Tried, who: Option<&Principal>) -> Version {
    let Tried { version, state, verdict } = tried;
    let told = who.is_some_and(|who| match state {
        TrialState::Failed => who.owns(bot),
        TrialState::Aside => who.role.covers(Role::Organiser),
        TrialState::Waiting | TrialState::Leased | TrialState::Passed => false,
    });
    Version {
        bot: bot.name.clone(),
        number: version.number,
        digest: version.digest.clone(),
        submitted_at_us: micros(version.submitted_at),
        state: state.as_str().to_owned(),
        reason: verdict.clone().filter(|_| told).unwrap_or_default(),
    }
}

/// Receives a bundle into a file without a name.
async fn receive(parts: impl Stream<Item = Result<Vec<u8>, ServiceError>>) -> Result<Received> {
    let (pieces, written) = mpsc::channel(AHEAD);
    let writing = tokio::task::spawn_blocking(move || write(written));
    let mut parts = pin!(parts);
    let mut size = 0;
    while let Some(piece) = parts.next().await {
        let piece = piece?;
        size += piece.len();
        if size > LARGEST {
            let error = format!(
                "the bundle is larger than {} MiB; leave out what the bot does not need",
                LARGEST >> 20
            );
            return Err(ServiceError::resource_exhausted(error));
        }
        if pieces.send(piece).await.is_err() {
            // The writer has failed, and says why.
            break;
        }
    }
    drop(pieces);
    if size == 0 {
        return Err(ServiceError::invalid_argument("the bundle is empty"));
    }
    let written = writing.await.map_err(io::Error::other).flatten();
    let (file, digest) = written.map_err(|error| {
        tracing::error!(%error, "a bundle cannot be kept");
        ServiceError::unavailable("the coordinator has no room for the bundle; try again later")
    })?;
    Ok(Received { file, size: size as u64, digest })
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
