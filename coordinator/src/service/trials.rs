//! Trials of submitted versions, for their owners.

use arbiter_proto::v1::{EntryForecast, GetTrialRequest, RetryTrialRequest, TrialStatus, Version};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::submissions::message;
use super::{Caller, Principal, ResponseStream, Result, Service, ServiceError, change};
use crate::access::Role;
use crate::db::bot_list::{self, TriedVersion};
use crate::db::tournaments::Tournament;
use crate::db::trials::TrialState;
use crate::db::{bots, trials};

impl Service {
    /// Streams the state of a version's trial: the present state, then every change until it is
    /// over.
    pub(crate) async fn watch_trial(
        &self,
        caller: &Caller,
        GetTrialRequest { tournament, bot, number }: GetTrialRequest,
    ) -> Result<ResponseStream<TrialStatus>> {
        let principal = caller.require(Role::Player)?.clone();
        let (tournament, bot) = self.managed_bot(&principal, &tournament, &bot).await?;
        let mut last = self.trial(&principal, &tournament, &bot, number).await?;
        let (sender, states) = mpsc::channel(1);
        let mut changes = self.changes.subscribe();
        let service = self.clone();
        tokio::spawn(async move {
            let mut send_result = sender.send(Ok(last.clone())).await;
            while send_result.is_ok()
                && !is_over(&last)
                && changes.changed_unless(sender.closed()).await
            {
                let next = service.next_status(&principal, &tournament, &bot, number, &last);
                match next.await {
                    Ok(None) => {}
                    Ok(Some(status)) => {
                        last = status.clone();
                        send_result = sender.send(Ok(status)).await;
                    }
                    Err(error) => {
                        drop(sender.send(Err(error)).await);
                        return;
                    }
                }
            }
        });
        Ok(Box::pin(ReceiverStream::new(states)))
    }

    /// The state of a version's trial.
    pub(crate) async fn get_trial(
        &self,
        caller: &Caller,
        GetTrialRequest { tournament, bot, number }: GetTrialRequest,
    ) -> Result<TrialStatus> {
        let principal = caller.require(Role::Player)?;
        let (tournament, bot) = self.managed_bot(principal, &tournament, &bot).await?;
        self.trial(principal, &tournament, &bot, number).await
    }

    /// Retries a trial that was set aside after too many faults.
    pub(crate) async fn retry_trial(
        &self,
        caller: &Caller,
        RetryTrialRequest { tournament, bot, number }: RetryTrialRequest,
    ) -> Result<TrialStatus> {
        let principal = caller.require(Role::Organiser)?;
        let (tournament, bot) = self.managed_bot(principal, &tournament, &bot).await?;
        let version = self.version(&bot, number).await?.version;
        let mut transaction = self.pool.begin().await?;
        if !trials::retry(&mut *transaction, version.id).await? {
            let name = &bot.name;
            let number = version.number;
            let error = format!("the trial of {name} version {number} is not set aside");
            return Err(ServiceError::failed_precondition(error));
        }
        let subject = format!("{} {} {}", tournament.name, bot.name, version.number);
        let detail = change(json!({"state": "aside"}), json!({"state": "waiting"}));
        self.commit_change(transaction, principal, "retry trial", &subject, Some(detail)).await?;
        self.dispatcher.news();
        self.trial(principal, &tournament, &bot, version.number).await
    }

    /// A version of a bot. Number 0 means the newest version.
    async fn version(&self, bot: &bots::Bot, number: i32) -> Result<TriedVersion> {
        let versions = bot_list::versions(&self.pool, bot.id).await?;
        let mut versions = versions.into_iter();
        let row = versions.find(|row| number == 0 || row.version.number == number);
        row.ok_or_else(|| ServiceError::missing_in(format!("bot {}", bot.name), "version", number))
    }

    /// The state of a version's trial, for its owner or an organiser.
    async fn trial(
        &self,
        principal: &Principal,
        tournament: &Tournament,
        bot: &bots::Bot,
        number: i32,
    ) -> Result<TrialStatus> {
        let row = self.version(bot, number).await?;
        let status = self.status_of(principal, bot, &row).await?;
        let forecast = self.entry_forecast(tournament, bot, &row).await;
        Ok(with_forecast(status, forecast))
    }

    /// The state of a version's trial if it differs from `last` in more than the forecast. The
    /// forecast is found again only if the state of the version has changed: its time depends on
    /// the clock and would differ after each change of the database.
    async fn next_status(
        &self,
        principal: &Principal,
        tournament: &Tournament,
        bot: &bots::Bot,
        number: i32,
        last: &TrialStatus,
    ) -> Result<Option<TrialStatus>> {
        let row = self.version(bot, number).await?;
        let status = self.status_of(principal, bot, &row).await?;
        let former = with_forecast(last.clone(), None);
        if status == former {
            return Ok(None);
        }
        let forecast = if status.version == former.version {
            last.version.as_ref().and_then(|version| version.forecast.clone())
        } else {
            self.entry_forecast(tournament, bot, &row).await
        };
        Ok(Some(with_forecast(status, forecast)))
    }

    /// The state of a version's trial without the forecast.
    async fn status_of(
        &self,
        principal: &Principal,
        bot: &bots::Bot,
        row: &TriedVersion,
    ) -> Result<TrialStatus> {
        let id = row.version.id;
        let version = Some(message(bot, row, Some(principal)));
        let Some(trial) = trials::get(&self.pool, id).await? else {
            return Ok(TrialStatus { version, ..TrialStatus::default() });
        };
        let ahead = match trial.state {
            TrialState::Waiting => trials::ahead(&self.pool, id).await?,
            _ => 0,
        };
        Ok(TrialStatus {
            version,
            tried: true,
            ahead,
            evidence: trial.evidence.unwrap_or_default(),
            log: trial.log.unwrap_or_default(),
            measurements: trial.figures.map(|figures| figures.to_string()).unwrap_or_default(),
            warnings: trial.warnings.unwrap_or_default(),
        })
    }
}

/// A state of a trial with this forecast.
fn with_forecast(status: TrialStatus, forecast: Option<EntryForecast>) -> TrialStatus {
    let version = status.version.map(|version| Version { forecast, ..version });
    TrialStatus { version, ..status }
}

/// Whether the state of a version is final unless an owner or organiser acts.
pub(crate) fn is_over(status: &TrialStatus) -> bool {
    let state = status.version.as_ref().map_or("", |version| &version.state);
    !["waiting", "trying"].contains(&state)
}
