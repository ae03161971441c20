//! Lists, groups and retries matches that were set aside after too many faults.

use arbiter_proto::fault::FaultKind;
use arbiter_proto::ids::{LotId, MatchName, MatchNumber};
use arbiter_proto::v1::{
    ListSetAsideRequest, ListSetAsideResponse, RetrySetAsideRequest, RetrySetAsideResponse,
    SetAsideMatch,
};
use serde_json::json;

use super::{Caller, ErrorKind, Principal, Result, Service, ServiceError, change, match_name};
use crate::access::Role;
use crate::db::tournaments::Tournament;
use crate::db::{faults, lots, played_matches};

/// Separates the cause of a reason from the question, which differs from match to match.
const QUESTION: &str = "; asked: ";

/// Matches of a tournament that were set aside for the same causes.
#[derive(Debug)]
pub struct SetAsideGroup<'a> {
    /// The names of the matches.
    pub matches: Vec<&'a str>,
    /// The reasons of the first match that have different causes, the newest first. Empty for those
    /// who may not see them.
    pub reasons: Vec<&'a str>,
    /// The kind of the newest fault of each match. Empty for those who may not see it.
    kind: &'a str,
}

impl<'a> SetAsideGroup<'a> {
    /// Groups matches by the causes of their faults.
    pub fn all(aside: &'a [SetAsideMatch]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for SetAsideMatch { r#match, reasons, kind } in aside {
            let mut different: Vec<&str> = Vec::new();
            for reason in reasons {
                if different.iter().all(|other| cause(other) != cause(reason)) {
                    different.push(reason);
                }
            }
            let causes = different.iter().map(|reason| cause(reason));
            let is_same = |group: &&mut Self| {
                group.kind == kind
                    && group.reasons.iter().map(|reason| cause(reason)).eq(causes.clone())
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.matches.push(r#match),
                None => groups.push(Self { matches: vec![r#match], reasons: different, kind }),
            }
        }
        groups
    }

    /// Whether the rules of a game package failed. The same rules would fail again.
    pub fn is_of_rules(&self) -> bool {
        self.kind == FaultKind::Rules.as_str()
    }
}

/// The cause of a reason, without the question.
fn cause(reason: &str) -> &str {
    reason.split(QUESTION).next().unwrap_or_default()
}

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
        for lot in lots::aside(&self.pool, tournament.id).await? {
            let mut faults = faults::of_lot(&self.pool, lot).await?;
            faults.retain(|_| caller.is_organiser());
            aside.push(SetAsideMatch {
                r#match: first_match(tournament, lot).to_string(),
                kind: faults.first().map(|fault| fault.kind.clone()).unwrap_or_default(),
                reasons: faults.into_iter().map(|fault| fault.reason).collect(),
            });
        }
        Ok(aside)
    }

    /// Queues a match that was set aside.
    pub(crate) async fn retry_set_aside(
        &self,
        caller: &Caller,
        request: RetrySetAsideRequest,
    ) -> Result<RetrySetAsideResponse> {
        let principal = caller.require(Role::Organiser)?;
        let name: MatchName = request.r#match.parse()?;
        let (tournament, id) = self.named_match(&name).await?;
        let row = played_matches::lot(&self.pool, id).await?;
        let row = row.ok_or_else(|| ServiceError::missing("match", &name))?;
        let lot = LotId { tournament: tournament.id, number: row.lot };
        self.retry_lot(principal, lot, &name).await?;
        Ok(RetrySetAsideResponse {})
    }

    /// Queues all matches of a tournament that were set aside, and returns how many.
    pub(crate) async fn retry_all_aside(&self, caller: &Caller, tournament: &str) -> Result<usize> {
        let principal = caller.require(Role::Organiser)?;
        let tournament = self.tournament(tournament).await?;
        let mut count = 0;
        for lot in lots::aside(&self.pool, tournament.id).await? {
            match self.retry_lot(principal, lot, &first_match(&tournament, lot)).await {
                Ok(()) => count += 1,
                // Another organiser retried it a moment ago.
                Err(error) if error.kind() == ErrorKind::FailedPrecondition => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    async fn retry_lot(&self, principal: &Principal, lot: LotId, name: &MatchName) -> Result<()> {
        let mut transaction = self.pool.begin().await?;
        if !lots::requeue(&mut *transaction, lot).await? {
            let error = format!("match {name} is not set aside");
            return Err(ServiceError::failed_precondition(error));
        }
        let subject = format!("{} {name}", name.tournament);
        let detail = change(json!({"state": "aside"}), json!({"state": "pending"}));
        self.commit_change(transaction, principal, "match retry", &subject, Some(detail)).await?;
        self.dispatcher.news();
        Ok(())
    }
}

/// The first match of a lot.
fn first_match(tournament: &Tournament, lot: LotId) -> MatchName {
    match_name(tournament, MatchNumber::from(lot.number))
}
