//! Voiding of matches, for organisers.

use arbiter_proto::ids::{MatchId, MatchIdError};
use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use serde_json::json;

use super::{Caller, DefaultEdition, Result, Service, ServiceError, parse_micros};
use crate::access::Role;
use crate::db::invalidated_matches::MatchFilter;
use crate::db::{editions, workers};
use crate::match_invalidation::{self, Preview, RankChange};
use crate::tournament::lifecycle;

/// Maximum number of matches that a response names.
const MAX_NAMED: usize = 20;
/// The longest reason, in characters.
const MAX_REASON: usize = 1000;

impl Service {
    /// Shows how voiding matches would change the leaderboard, and voids them if requested.
    pub(crate) async fn void_matches(
        &self,
        caller: &Caller,
        request: VoidMatchesRequest,
    ) -> Result<VoidMatchesResponse> {
        let principal = caller.require(Role::Organiser)?;
        let tournament = self.tournament(&request.tournament).await?;
        let filter = self.void_filter(&request).await?;
        let named_matches: Vec<MatchId> =
            request.matches.iter().map(|name| name.parse()).collect::<Result<_, MatchIdError>>()?;
        if request.reason.chars().count() > MAX_REASON {
            return Err(ServiceError::invalid_argument(format!(
                "write a reason of at most {MAX_REASON} characters"
            )));
        }
        let official = editions::official(&self.pool, tournament.id).await?;
        let edition =
            self.edition_or_default(&tournament, None, DefaultEdition::Official, official).await?;
        let mut connection = self.pool.acquire().await?;
        let matches =
            match_invalidation::find(&mut connection, tournament.id, &filter, &named_matches)
                .await?;
        drop(connection);
        let games = self.queue.games();
        let preview = match_invalidation::preview(&self.pool, games, edition.id, &matches).await?;
        if request.apply {
            let mut transaction = self.pool.begin().await?;
            let db = &mut *transaction;
            lifecycle::lock_open(&mut *db, tournament.id).await?;
            // The second search includes matches that were reported after the preview.
            let matches =
                match_invalidation::find(&mut *db, tournament.id, &filter, &named_matches).await?;
            if matches.is_empty() {
                return Err(ServiceError::failed_precondition(
                    "no match was changed: no match is selected, or all are already void",
                ));
            }
            let reason = request.reason.as_str();
            let now = self.now();
            match_invalidation::apply(&mut *db, tournament.id, &matches, principal.id, reason, now)
                .await?;
            let detail = json!({
                "worker": request.worker, "from_us": request.from_us, "to_us": request.to_us,
                "named": request.matches.len(), "matches": matches.len(), "reason": reason,
            });
            let action = "tournament void";
            let subject = &tournament.name;
            self.record_change(&mut *db, principal, action, subject, Some(&detail)).await?;
            transaction.commit().await?;
            self.changes.notify();
        }
        Ok(message(&matches, edition.number, preview))
    }

    /// The requested worker and period.
    async fn void_filter(&self, request: &VoidMatchesRequest) -> Result<MatchFilter> {
        let worker = Some(request.worker.clone()).filter(|name| !name.is_empty());
        if let Some(name) = &worker {
            let row = workers::find(&self.pool, name).await?;
            row.ok_or_else(|| ServiceError::missing("worker", name))?;
        }
        let from = request.from_us.map(parse_micros).transpose()?;
        let to = request.to_us.map(parse_micros).transpose()?;
        Ok(MatchFilter { worker, from, to })
    }
}

fn message(matches: &[MatchId], edition: i32, preview: Preview) -> VoidMatchesResponse {
    let Preview { game, missing, places } = preview;
    let columns = game.ranking_columns();
    let texts = |score: &[i128]| {
        let part = |index: usize| score.get(index).copied().unwrap_or(0).to_string();
        (0..columns.len()).map(part).collect()
    };
    let rank = |rank: usize| u32::try_from(rank).unwrap_or(u32::MAX);
    let places = places.into_iter().map(|RankChange { bot, now, without }| VoidStanding {
        bot,
        rank: rank(now.0),
        rank_without: rank(without.0),
        score: texts(&now.1),
        score_without: texts(&without.1),
    });
    VoidMatchesResponse {
        matches: i64::try_from(matches.len()).unwrap_or(i64::MAX),
        examples: matches.iter().take(MAX_NAMED).map(ToString::to_string).collect(),
        edition,
        missing: i64::try_from(missing).unwrap_or(i64::MAX),
        standings: places.collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
    }
}
