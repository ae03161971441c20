//! Tournaments that are dropped.

use crate::access::Role;
use arbiter_proto::v1::{DeleteTournamentRequest, DeleteTournamentResponse};
use serde_json::json;

use super::{Caller, Result, Service};
use crate::db::editions;
use crate::tournament::create;

impl Service {
    /// Drops a tournament that has ended.
    pub(crate) async fn delete_tournament(
        &self,
        caller: &Caller,
        request: DeleteTournamentRequest,
    ) -> Result<DeleteTournamentResponse> {
        let who = caller.require(Role::Organiser)?;
        let name = request.tournament.as_str();
        let found = self.tournament(name).await?;
        let mut transaction = self.pool.begin().await?;
        let gone = create::drop_in(&mut transaction, found.id, self.now()).await?;
        let editions = editions::of_tournament(&mut *transaction, gone.id).await?;
        let matches = editions.iter().map(|edition| edition.counted).sum();
        let editions = u32::try_from(editions.len()).unwrap_or(u32::MAX);
        let detail = json!({
            "id": gone.id.0, "game": gone.game, "state": gone.state.as_str(),
            "editions": editions, "matches": matches,
        });
        self.note_in(&mut *transaction, who, "tournament drop", name, Some(&detail)).await?;
        transaction.commit().await?;
        self.clearing.due();
        self.changes.tell();
        Ok(DeleteTournamentResponse { editions, matches })
    }
}
