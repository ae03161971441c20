//! Changes of tournaments by organisers: edits of the settings, and announcements.

use arbiter_proto::v1::edit_tournament_request::Source;
use arbiter_proto::v1::{
    self, EditTournamentRequest, EditTournamentResponse, PostAnnouncementRequest,
    RemoveAnnouncementRequest, SettingChange, Tournament,
};
use serde_json::{Map, Value, json};

use super::{Caller, Result, Service, ServiceError, change, micros};
use crate::access::Role;
use crate::db::{announcements, editions, tournaments};
use crate::tournament::file::markdown;
use crate::tournament::file_changes::{self, EditContext, KeyChange};
use crate::tournament::{TournamentFile, lifecycle};

/// Maximum length of an announcement, in bytes.
const MAX_ANNOUNCEMENT: usize = 2000;

impl Service {
    /// Changes the settings of a tournament, or shows what a change would do.
    pub(crate) async fn edit_tournament(
        &self,
        caller: &Caller,
        EditTournamentRequest { tournament, revision, apply, source }: EditTournamentRequest,
    ) -> Result<EditTournamentResponse> {
        let principal = caller.require(Role::Organiser)?;
        let id = self.tournament(&tournament).await?.id;
        let mut transaction = self.pool.begin().await?;
        let db = &mut *transaction;
        // No edition opens until the transaction ends.
        let row = lifecycle::lock_open(&mut *db, id).await?;
        if !revision.is_empty() && revision != row.revision() {
            return Err(ServiceError::failed_precondition(format!(
                "the tournament {tournament} was changed meanwhile; look at its present settings \
                 and edit it again"
            )));
        }
        let games = self.games();
        let current = TournamentFile::stored(games, &row)?;
        let edited = match source {
            Some(Source::File(text)) => TournamentFile::rewritten(games, &text)?,
            Some(Source::Keys(keys)) => current.with_changes(games, &keys.set, &keys.unset)?,
            None => return Err(ServiceError::invalid_argument("the changes are missing")),
        };
        if edited.file.seed.is_some_and(|seed| seed != row.seed) {
            let cause = "another seed was published when it was created; leave it out";
            return Err(edited.blame("seed", cause).into());
        }
        let has_edition = editions::newest_id(&mut *db, id).await?.is_some();
        let is_rehearsal = row.rehearsal.is_some();
        let context = EditContext { has_edition, is_rehearsal, now: self.now() };
        let changes = file_changes::changes(&current, &edited, context)?;
        if apply && !changes.is_empty() {
            let new = edited.file.to_json();
            if edited.file.house.ranked != current.house.ranked {
                // An official leaderboard changes only with its edition.
                editions::keep_settings(&mut *db, id).await?;
            }
            // The stored text stays as it is if only the presentation changed.
            let settings = if new == current.to_json() { &row.settings } else { &new };
            tournaments::edit(&mut *db, id, settings, &edited.file.presentation).await?;
            let values = |value: fn(&KeyChange) -> &Value| -> Map<String, Value> {
                changes.iter().map(|change| (change.key.clone(), value(change).clone())).collect()
            };
            let before = values(|change| &change.before);
            let after = values(|change| &change.after);
            let detail = change(before.into(), after.into());
            self.commit_change(transaction, principal, "tournament edit", &row.name, Some(detail))
                .await?;
            self.changes.notify();
        } else {
            transaction.rollback().await?;
        }
        let row = self.tournament(&tournament).await?;
        Ok(EditTournamentResponse {
            changes: changes.into_iter().map(change_message).collect(),
            tournament: Some(self.tournament_message(row, caller).await?),
        })
    }

    /// Posts an announcement.
    pub(crate) async fn post_announcement(
        &self,
        caller: &Caller,
        PostAnnouncementRequest { tournament, text }: PostAnnouncementRequest,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let text = markdown(&text, MAX_ANNOUNCEMENT).map_err(|cause| {
            ServiceError::invalid_argument(format!("the announcement: {cause}"))
        })?;
        if text.is_empty() {
            let error = "the announcement is empty; write what is new";
            return Err(ServiceError::invalid_argument(error));
        }
        let id = self.tournament(&tournament).await?.id;
        let mut transaction = self.pool.begin().await?;
        let row = tournaments::lock(&mut transaction, id).await?;
        let row = row.ok_or_else(|| ServiceError::missing("tournament", &tournament))?;
        let number = announcements::add(&mut *transaction, id, &text, self.now()).await?;
        let detail = change(Value::Null, json!({"number": number, "text": text}));
        self.commit_change(transaction, principal, "announce", &row.name, Some(detail)).await?;
        self.changes.notify();
        self.tournament_message(row, caller).await
    }

    /// Removes an announcement.
    pub(crate) async fn remove_announcement(
        &self,
        caller: &Caller,
        RemoveAnnouncementRequest { tournament, number }: RemoveAnnouncementRequest,
    ) -> Result<Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let row = self.tournament(&tournament).await?;
        let mut transaction = self.pool.begin().await?;
        let text = announcements::remove(&mut *transaction, row.id, number, self.now()).await?;
        let Some(text) = text else {
            let owner = format!("tournament {}", row.name);
            return Err(ServiceError::missing_in(owner, "announcement", number));
        };
        let detail = change(json!({"number": number, "text": text}), Value::Null);
        self.commit_change(transaction, principal, "announce remove", &row.name, Some(detail))
            .await?;
        self.changes.notify();
        self.tournament_message(row, caller).await
    }

    /// The announcements of a tournament, newest first.
    pub(super) async fn announcements(
        &self,
        tournament: &tournaments::Tournament,
    ) -> Result<Vec<v1::Announcement>> {
        let rows = announcements::list(&self.pool, tournament.id).await?;
        let message = |row: announcements::Announcement| v1::Announcement {
            number: row.number,
            at_us: micros(row.at),
            text: row.text,
        };
        Ok(rows.into_iter().map(message).collect())
    }
}

/// A changed key as a message.
fn change_message(KeyChange { key, before, after, effect }: KeyChange) -> SettingChange {
    let text = |value: Value| if value.is_null() { String::new() } else { value.to_string() };
    SettingChange { key, before: text(before), after: text(after), effect }
}
