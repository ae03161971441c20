//! Lists and retries matches that were set aside after too many faults.

use arbiter_proto::ids::{LotId, MatchId};
use arbiter_proto::v1::{
    ListSetAsideRequest, ListSetAsideResponse, RetrySetAsideRequest, RetrySetAsideResponse,
    SetAsideMatch,
};
use serde_json::json;

use super::{Caller, ErrorKind, Principal, Result, Service, ServiceError, change};
use crate::access::Role;
use crate::db::editions::EditionState;
use crate::db::tournaments::Tournament;
use crate::db::{editions, faults, lots, played_matches, tournaments};

impl Service {
    /// Lists the matches of a tournament that were set aside. Only organisers see the reasons.
    pub(crate) async fn list_set_aside(
        &self,
        caller: &Caller,
        request: ListSetAsideRequest,
    ) -> Result<ListSetAsideResponse> {
        let tournament = self.tournament(&request.tournament).await?;
        Ok(ListSetAsideResponse { matches: self.tournament_aside(&tournament, caller).await? })
    }

    /// Lists the matches of all open tournaments that were set aside, with the tournaments' names.
    pub(crate) async fn list_all_aside(
        &self,
        caller: &Caller,
    ) -> Result<Vec<(String, Vec<SetAsideMatch>)>> {
        let mut all = Vec::new();
        for tournament in self.open_tournaments().await? {
            let matches = self.tournament_aside(&tournament, caller).await?;
            all.push((tournament.name, matches));
        }
        Ok(all)
    }

    async fn tournament_aside(
        &self,
        tournament: &Tournament,
        caller: &Caller,
    ) -> Result<Vec<SetAsideMatch>> {
        let mut aside = Vec::new();
        for lot in self.lots_aside(tournament).await? {
            let mut faults = faults::of_lot(&self.pool, lot).await?;
            faults.retain(|_| caller.is_organiser());
            aside.push(SetAsideMatch {
                r#match: self.first_match(lot).await?.to_string(),
                reasons: faults.into_iter().map(|fault| fault.reason).collect(),
            });
        }
        Ok(aside)
    }

    async fn lots_aside(&self, tournament: &Tournament) -> Result<Vec<LotId>> {
        let mut lots = Vec::new();
        for edition in editions::of_tournament(&self.pool, tournament.id).await? {
            if edition.state == EditionState::Running {
                lots.extend(lots::aside(&self.pool, edition.id).await?);
            }
        }
        Ok(lots)
    }

    async fn first_match(&self, lot: LotId) -> Result<MatchId> {
        let number = lots::first(&self.pool, lot).await?;
        Ok(MatchId { edition: lot.edition, number })
    }

    /// Queues a match that was set aside.
    pub(crate) async fn retry_set_aside(
        &self,
        caller: &Caller,
        request: RetrySetAsideRequest,
    ) -> Result<RetrySetAsideResponse> {
        let principal = caller.require(Role::Organiser)?;
        let id: MatchId = request.r#match.parse()?;
        let row = played_matches::lot(&self.pool, id).await?;
        let row = row.ok_or_else(|| ServiceError::missing("match", id))?;
        let lot = LotId { edition: id.edition, number: row.lot };
        self.retry_lot(principal, lot, id).await?;
        Ok(RetrySetAsideResponse {})
    }

    /// Queues all matches of a tournament that were set aside, and returns how many.
    pub(crate) async fn retry_all_aside(&self, caller: &Caller, tournament: &str) -> Result<usize> {
        let principal = caller.require(Role::Organiser)?;
        let tournament = self.tournament(tournament).await?;
        let mut count = 0;
        for lot in self.lots_aside(&tournament).await? {
            let id = self.first_match(lot).await?;
            match self.retry_lot(principal, lot, id).await {
                Ok(()) => count += 1,
                // Another organiser retried it a moment ago.
                Err(error) if error.kind() == ErrorKind::FailedPrecondition => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    async fn retry_lot(&self, principal: &Principal, lot: LotId, id: MatchId) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        if !lots::requeue(&mut *transaction, lot).await? {
            let error = format!("match {id} is not set aside");
            return Err(ServiceError::failed_precondition(error));
        }
        let tournament = tournaments::of_edition(&mut *transaction, id.edition).await?;
        let subject = format!("{} {id}", tournament.name);
        let detail = change(&json!({"state": "aside"}), &json!({"state": "pending"}));
        self.record_change(&mut *transaction, principal, "match retry", &subject, Some(&detail))
            .await?;
        transaction.commit().await?;
        self.dispatcher.news();
        Ok(())
    }
}
