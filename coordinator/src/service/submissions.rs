//! Stores submissions, and queues their trials.

use arbiter_proto::ids::TournamentId;
use arbiter_proto::trace::Span;
use arbiter_proto::v1::{EntryForecast, Submission, Version};
use sqlx::PgConnection;
use tokio_stream::Stream;

use super::entry_policy::check_version_entry;
use super::leaderboard_freeze::entry_rules;
use super::received_bundle::{ReceivedBundle, receive};
use super::{Caller, Principal, Result, Service, ServiceError, game_packages, micros};
use crate::access::Role;
use crate::database_clock;
use crate::db::bot_list::{self, TriedVersion};
use crate::db::tournaments::Tournament;
use crate::db::trace_contexts::{self, Subject};
use crate::db::trials::TrialState;
use crate::db::{bots, tokens, tournaments, trials, versions};

/// Maximum number of versions of one owner that wait for their trials.
const MAX_PENDING: i64 = 8;

impl Service {
    /// Stores a submission, whose bundle arrives in pieces. The permissions are checked before the
    /// first piece is read.
    pub(crate) async fn submit_version(
        &self,
        caller: &Caller,
        submission: &Submission,
        pieces: impl Stream<Item = Result<Vec<u8>>>,
    ) -> Result<Version> {
        let principal = caller.require(Role::Player)?;
        if submission.house && !principal.role.covers(Role::Organiser) {
            return Err(ServiceError::permission_denied("only organisers submit house bots"));
        }
        let tournament = self.tournament(&submission.tournament).await?;
        check_version_entry(principal, &tournament, submission.house, self.now())?;
        let needs_trial = !submission.house && entry_rules(&tournament)?.preflight;
        if needs_trial {
            let mut db = self.pool.acquire().await?;
            game_packages::check_stored(&mut db, &tournament).await?;
            self.check_pending(&mut db, principal).await?;
        }
        let mut span = Span::begin("submit", None);
        span.set("tournament", tournament.name.clone());
        let bundle = receive(pieces).await?;
        let version = self
            .store_version(principal, &tournament, submission, bundle, needs_trial, &span)
            .await;
        let version = version.inspect_err(|error| span.fail(error.message()))?;
        span.set("version", i64::from(version.number));
        tracing::info!(
            tournament = tournament.name,
            bot = version.bot,
            version = version.number,
            trace_id = span.trace_id(),
            "submitted"
        );
        self.dispatcher.news();
        let forecast = self.forecast_of_new(&tournament, &version.bot, version.number).await;
        let outlook = self.outlook(&tournament, &version.bot).await;
        Ok(Version { outlook, forecast, ..version })
    }

    /// In which edition a version plays that has just been stored.
    async fn forecast_of_new(
        &self,
        tournament: &Tournament,
        bot: &str,
        number: i32,
    ) -> Option<EntryForecast> {
        let bot = bots::find(&self.pool, tournament.id, bot).await.ok().flatten()?;
        let versions = bot_list::versions(&self.pool, bot.id).await.ok()?;
        let row = versions.iter().find(|row| row.version.number == number)?;
        self.entry_forecast(tournament, &bot, row).await
    }

    /// What the next edition of a tournament with this bot will lack. Empty if it will lack
    /// nothing, or if this cannot be found out: the version is stored all the same.
    async fn outlook(&self, tournament: &Tournament, bot: &str) -> String {
        let outlook = async {
            let mut db = self.pool.acquire().await?;
            let bot = bots::find(&mut *db, tournament.id, bot).await?.map(|bot| bot.id);
            let games = self.queue.games();
            self.entry_outlook.with_new_bot(&mut db, games, tournament, bot).await
        };
        let outlook = outlook.await.inspect_err(|error| {
            tracing::debug!(tournament = tournament.name, %error, "cannot foresee the next edition");
        });
        outlook.ok().flatten().unwrap_or_default()
    }

    /// Refuses a version if too many versions of its owner wait for their trials.
    async fn check_pending(&self, db: &mut PgConnection, principal: &Principal) -> Result<()> {
        let pending = trials::pending(db, principal.id).await?;
        if pending < MAX_PENDING {
            return Ok(());
        }
        Err(ServiceError::resource_exhausted(format!(
            "{pending} of your versions wait for their trials, and at most {MAX_PENDING} may; \
             submit again when one is over"
        )))
    }

    /// Refuses a version if entry closed or the token became invalid while its bundle arrived.
    /// Blocks other submissions of this owner until the transaction ends, so that concurrent
    /// submissions cannot exceed the owner's limits. Returns the present state of the tournament.
    async fn lock_entry(
        &self,
        db: &mut PgConnection,
        principal: &Principal,
        tournament: TournamentId,
        submission: &Submission,
    ) -> Result<Tournament> {
        tokens::lock_submissions(&mut *db, principal.id).await?;
        if !tokens::is_valid(&mut *db, principal.id).await? {
            return Err(ServiceError::token_ended());
        }
        let row = tournaments::get(&mut *db, tournament).await?;
        let row = row.ok_or_else(|| ServiceError::missing("tournament", &submission.tournament))?;
        let now = database_clock::read(db).await?.time;
        check_version_entry(principal, &row, submission.house, now)?;
        Ok(row)
    }

    /// Stores a bundle as the next version of a bot, which is created if it is new. If the newest
    /// version has the same bundle, no new version is created.
    async fn store_version(
        &self,
        principal: &Principal,
        tournament: &Tournament,
        submission: &Submission,
        bundle: ReceivedBundle,
        needs_trial: bool,
        span: &Span,
    ) -> Result<Version> {
        let ReceivedBundle { file, size, digest } = bundle;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        let now = self.now();
        let tournament = &self.lock_entry(&mut *db, principal, tournament.id, submission).await?;
        if needs_trial {
            self.check_pending(&mut *db, principal).await?;
        }
        let bot = self.find_or_create_bot(&mut *db, principal, tournament, submission).await?;
        self.undo_withdrawal(&mut *db, tournament, &bot, now).await?;
        let subject = |number: i32| format!("{} {} {number}", tournament.name, bot.name);
        let versions = bot_list::versions(&mut *db, bot.id).await?;
        if let Some(row) = versions.first().filter(|newest| newest.version.digest == digest) {
            let number = row.version.number;
            if let Some(reason) = bot.suspension_reason(row.version.id) {
                return Err(ServiceError::failed_precondition(format!(
                    "version {number} of the bot {} is suspended: {reason}; submit a better version, \
                    or ask an organiser to reinstate it",
                    bot.name
                )));
            }
            self.commit_change(transaction, principal, "submit", &subject(number), None).await?;
            return Ok(message(&bot, row, Some(principal)));
        }
        self.check_quota(&mut *db, tournament, bot.owner.filter(|_| !principal.is_organiser()))
            .await?;
        // The bundle is stored after all checks, so that bundles of refused versions are not
        // stored.
        versions::copy_bundle_in(&mut *db, &digest, size, file).await?;
        let id = versions::submit(&mut *db, bot.id, &digest, now).await?;
        if needs_trial {
            trials::queue(&mut *db, id).await?;
        } else {
            tournaments::mark_changed(&mut *db, tournament.id, now).await?;
        }
        if let Some(parent) = span.context() {
            trace_contexts::store(&mut *db, Subject::Version(id), &parent).await?;
        }
        let versions = bot_list::versions(&mut *db, bot.id).await?;
        let row = versions.iter().find(|row| row.version.id == id);
        let row = row.ok_or_else(|| ServiceError::internal("the submitted version is missing"))?;
        let number = row.version.number;
        self.commit_change(transaction, principal, "submit", &subject(number), None).await?;
        Ok(message(&bot, row, Some(principal)))
    }
}

/// A version as a message. Its owner sees why it failed. Organisers see why its trial was set
/// aside.
pub(super) fn message(
    bot: &bots::Bot,
    row: &TriedVersion,
    principal: Option<&Principal>,
) -> Version {
    let TriedVersion { version, state, verdict } = row;
    let sees_verdict = principal.is_some_and(|principal| match state {
        TrialState::Failed => principal.owns(bot),
        TrialState::Aside => principal.role.covers(Role::Organiser),
        TrialState::Waiting | TrialState::Leased | TrialState::Passed => false,
    });
    Version {
        bot: bot.name.clone(),
        number: version.number,
        digest: version.digest.clone(),
        submitted_at_us: micros(version.submitted_at),
        state: state.as_str().to_owned(),
        reason: verdict.clone().filter(|_| sees_verdict).unwrap_or_default(),
        outlook: String::new(),
        forecast: None,
    }
}
