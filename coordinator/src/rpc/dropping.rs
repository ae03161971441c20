//! Tournaments that are dropped.

use arbiter_proto::v1::DropTournamentResponse;
use serde_json::json;
use tonic::Status;

use super::status::database;
use super::tournament::end_error;
use super::{Shared, Who};
use crate::db::editions;
use crate::tournament::create;

impl Shared {
    /// Drops a tournament that has ended.
    pub(super) async fn drop_named(
        &self,
        who: &Who,
        name: &str,
    ) -> Result<DropTournamentResponse, Status> {
        let found = self.tournament(name).await?;
        let mut transaction = self.pool.begin().await.map_err(database)?;
        let gone = create::drop_in(&mut transaction, found.id, self.now()).await;
        let gone = gone.map_err(end_error)?;
        let editions = editions::of_tournament(&mut *transaction, gone.id).await;
        let editions = editions.map_err(database)?;
        let matches = editions.iter().map(|edition| edition.counted).sum();
        let editions = u32::try_from(editions.len()).unwrap_or(u32::MAX);
        let detail = json!({
            "id": gone.id.0, "game": gone.game, "state": gone.state.word(),
            "editions": editions, "matches": matches,
        });
        self.note_in(&mut *transaction, who, "tournament drop", name, Some(&detail)).await?;
        transaction.commit().await.map_err(database)?;
        self.clearing.due();
        self.changes.tell();
        Ok(DropTournamentResponse { editions, matches })
    }
}
