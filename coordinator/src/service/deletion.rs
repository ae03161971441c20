//! Deletion of tournaments.

use crate::access::Role;
use arbiter_proto::v1::{DeleteTournamentRequest, DeleteTournamentResponse};
use serde_json::json;

use super::{Caller, Result, Service};
use crate::db::editions;
use crate::db::lots::{self, LotState};
use crate::tournament::lifecycle;

impl Service {
    /// Deletes a tournament that has ended.
    pub(crate) async fn delete_tournament(
        &self,
        caller: &Caller,
        request: DeleteTournamentRequest,
    ) -> Result<DeleteTournamentResponse> {
        let principal = caller.require(Role::Organiser)?;
        let name = request.tournament.as_str();
        let id = self.tournament(name).await?.id;
        let mut transaction = self.pool.begin().await?;
        let deleted = lifecycle::delete(&mut transaction, id, self.now()).await?;
        let editions = editions::of_tournament(&mut *transaction, deleted.id).await?;
        let census = lots::census(&mut *transaction, deleted.id).await?;
        let counted = census.iter().filter(|count| count.state == LotState::Counted);
        let matches: i64 = counted.map(|count| count.matches).sum();
        let editions = u32::try_from(editions.len()).unwrap_or(u32::MAX);
        let detail = json!({
            "id": deleted.id.0, "game": deleted.game, "state": deleted.state.as_str(),
            "editions": editions, "matches": matches,
        });
        self.commit_change(transaction, principal, "tournament drop", name, Some(detail)).await?;
        self.cleaner.wake();
        self.changes.notify();
        Ok(DeleteTournamentResponse { editions, matches })
    }
}
