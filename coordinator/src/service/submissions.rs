//! Submissions: received, stored, and sent to their trial.
//!
//! Here a bundle is only bytes. They go piece by piece from the network to a temporary file, then
//! to the database, and from there to workers. Nothing in this crate can read an archive: only a
//! worker's sandbox unpacks one.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::pin::pin;

use arbiter_proto::ids::TournamentId;
use arbiter_proto::trace::Span;
use arbiter_proto::v1::{Submission, Version};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio_stream::{Stream, StreamExt as _};

use super::entry_policy::check_version_entry;
use super::leaderboard_freeze::entry_rules;
use super::{Caller, Principal, Result, Service, ServiceError, micros};
use crate::access::Role;
use crate::database_clock;
use crate::db::bot_list::{self, TriedVersion};
use crate::db::tournaments::Tournament;
use crate::db::trials::TrialState;
use crate::db::{bots, tokens, tournaments, trace_contexts, trials, versions};

/// The largest bundle, in bytes.
pub(crate) const MAX_BUNDLE: usize = 64 << 20;
/// Pieces of a bundle that may wait to be written.
const MAX_BUFFERED: usize = 4;
/// Versions of one owner that may wait for their trials.
const MAX_PENDING: i64 = 8;

/// A bundle that was received.
struct Received {
    file: File,
    size: u64,
    digest: [u8; 32],
}

impl Service {
    /// Stores a submission, whose bundle arrives in pieces. The permissions are checked before the
    /// first piece is read.
    pub(crate) async fn submit_version(
        &self,
        caller: &Caller,
        submission: &Submission,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<Version> {
        let who = caller.require(Role::Player)?;
        if submission.house && !who.role.covers(Role::Organiser) {
            return Err(ServiceError::permission_denied("only organisers submit house bots"));
        }
        let tournament = self.tournament(&submission.tournament).await?;
        check_version_entry(who, &tournament, submission.house, self.now())?;
        let needs_trial = !submission.house && entry_rules(&tournament)?.preflight;
        if needs_trial {
            self.check_pending(&mut *self.pool.acquire().await?, who).await?;
        }
        let mut span = Span::begin("submit", None);
        span.set("tournament", tournament.name.clone());
        let bundle = receive(pieces).await?;
        let version =
            self.store_version(who, &tournament, submission, bundle, needs_trial, &span).await;
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

    /// Refuses a version if too many versions of its owner wait for their trials.
    async fn check_pending(&self, db: &mut PgConnection, who: &Principal) -> Result<()> {
        let pending = trials::pending(db, who.id).await?;
        if pending < MAX_PENDING {
            return Ok(());
        }
        Err(ServiceError::resource_exhausted(format!(
            "{pending} of your versions wait for their trials, and at most {MAX_PENDING} may; \
             submit again when one is over"
        )))
    }

    /// Refuses a version whose bundle arrived too late: entry has closed since, or the token has
    /// ended. Locks out other submissions of this owner until the transaction ends, so that
    /// concurrent ones cannot exceed the owner's limits. Returns the present tournament.
    async fn lock_entry(
        &self,
        db: &mut PgConnection,
        who: &Principal,
        tournament: TournamentId,
        submission: &Submission,
    ) -> Result<Tournament> {
        tokens::lock_submissions(&mut *db, who.id).await?;
        if !tokens::is_valid(&mut *db, who.id).await? {
            return Err(ServiceError::token_ended());
        }
        let found = tournaments::get(&mut *db, tournament).await?;
        let found =
            found.ok_or_else(|| ServiceError::missing("tournament", &submission.tournament))?;
        let now = database_clock::read(db).await?.at;
        check_version_entry(who, &found, submission.house, now)?;
        Ok(found)
    }

    /// Stores a bundle as the next version of a bot, which is created if it is new. A bundle that
    /// is equal to the newest version's makes no new version.
    async fn store_version(
        &self,
        who: &Principal,
        tournament: &Tournament,
        submission: &Submission,
        bundle: Received,
        needs_trial: bool,
        span: &Span,
    ) -> Result<Version> {
        let Received { file, size, digest } = bundle;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let now = self.now();
        let tournament = &self.lock_entry(&mut *db, who, tournament.id, submission).await?;
        if needs_trial {
            self.check_pending(&mut *db, who).await?;
        }
        let bot = self.find_or_create_bot(&mut *db, who, tournament.id, submission).await?;
        self.undo_withdrawal(&mut *db, tournament, &bot, now).await?;
        let subject = |number: i32| format!("{} {} {number}", tournament.name, submission.bot);
        let newest = bot_list::versions(&mut *db, bot.id).await?;
        if let Some(same) = newest.first().filter(|newest| newest.version.digest == digest) {
            let number = same.version.number;
            if let Some(reason) = bot.suspension_reason(same.version.id) {
                return Err(ServiceError::failed_precondition(format!(
                    "{} version {number} is suspended: {reason}; submit a better version, or ask \
                    an organiser to reinstate it",
                    bot.name
                )));
            }
            self.record_change(&mut *db, who, "submit", &subject(number), None).await?;
            transaction.commit().await?;
            return Ok(message(&bot, same, Some(who)));
        }
        self.check_quota(&mut *db, tournament, bot.owner.filter(|_| !who.is_organiser())).await?;
        // Only now: bundles of refused versions are not stored.
        versions::copy_bundle_in(&mut *db, &digest, size, file).await?;
        let id = versions::submit(&mut *db, bot.id, &digest, now).await?;
        if needs_trial {
            trials::queue(&mut *db, id).await?;
        } else {
            tournaments::mark_changed(&mut *db, tournament.id, now).await?;
        }
        if let Some(parent) = span.context() {
            trace_contexts::store_version(&mut *db, id, &parent).await?;
        }
        let versions = bot_list::versions(&mut *db, bot.id).await?;
        let submitted = versions.iter().find(|found| found.version.id == id);
        let submitted =
            submitted.ok_or_else(|| ServiceError::internal("the submitted version is missing"))?;
        let number = submitted.version.number;
        self.record_change(&mut *db, who, "submit", &subject(number), None).await?;
        transaction.commit().await?;
        Ok(message(&bot, submitted, Some(who)))
    }

    /// The bot of a submission, which is created if it is new.
    async fn find_or_create_bot(
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
            let created = bots::find(&mut *db, tournament, name).await?;
            return created.ok_or_else(|| ServiceError::internal("the created bot is missing"));
        };
        if submission.house != bot.owner.is_none() || !who.owns(&bot) {
            let error = format!("another player's bot is named {name}; choose another name");
            return Err(ServiceError::permission_denied(error));
        }
        Ok(bot)
    }
}

/// A version as a message. Its owner sees why it failed, organisers why its trial was set aside.
pub(super) fn message(bot: &bots::Bot, tried: &TriedVersion, who: Option<&Principal>) -> Version {
    let TriedVersion { version, state, verdict } = tried;
    let sees_verdict = who.is_some_and(|who| match state {
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
        reason: verdict.clone().filter(|_| sees_verdict).unwrap_or_default(),
    }
}

/// Receives a bundle into a temporary file without a name.
async fn receive(parts: impl Stream<Item = Result<Vec<u8>, ServiceError>>) -> Result<Received> {
    let (pieces, written) = mpsc::channel(MAX_BUFFERED);
    let writing = tokio::task::spawn_blocking(move || write(written));
    let mut parts = pin!(parts);
    let mut size = 0;
    while let Some(piece) = parts.next().await {
        let piece = piece?;
        size += piece.len();
        if size > MAX_BUNDLE {
            let error = format!(
                "the bundle is larger than {} MiB; leave out what the bot does not need",
                MAX_BUNDLE >> 20
            );
            return Err(ServiceError::resource_exhausted(error));
        }
        if pieces.send(piece).await.is_err() {
            // The writer failed. Its error is read below.
            break;
        }
    }
    drop(pieces);
    if size == 0 {
        return Err(ServiceError::invalid_argument("the bundle is empty"));
    }
    let written = writing.await.map_err(io::Error::other).flatten();
    let (file, digest) = written.map_err(|error| {
        tracing::error!(%error, "cannot write a bundle to a temporary file");
        ServiceError::unavailable("the coordinator has no room for the bundle; try again later")
    })?;
    Ok(Received { file, size: size as u64, digest })
}

/// Writes pieces to a temporary file. Returns the rewound file and the digest of its contents.
fn write(mut pieces: mpsc::Receiver<Vec<u8>>) -> io::Result<(File, [u8; 32])> {
    let mut file = tempfile::tempfile()?;
    let mut hasher = blake3::Hasher::new();
    while let Some(piece) = pieces.blocking_recv() {
        hasher.update(&piece);
        file.write_all(&piece)?;
    }
    file.rewind()?;
    Ok((file, hasher.finalize().into()))
}
