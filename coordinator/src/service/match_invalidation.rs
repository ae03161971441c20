//! Voiding of matches, for organisers.

use arbiter_proto::ids::{MatchName, MatchNumber};
use arbiter_proto::v1::{VoidMatchesRequest, VoidMatchesResponse, VoidStanding};
use serde_json::json;

use super::rankings::rank_message;
use super::{Caller, DefaultEdition, Result, Service, ServiceError, match_name, parse_micros};
use crate::access::Role;
use crate::db::editions;
use crate::db::editions::EditionScope;
use crate::db::invalidated_matches::MatchFilter;
use crate::db::tournaments::Tournament;
use crate::match_invalidation::{self, InvalidationError, Preview, RankChange};
use crate::tournament::{lifecycle, rounds};

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
        let named_matches = match_numbers(&tournament, &request.matches)?;
        if request.reason.chars().count() > MAX_REASON {
            return Err(ServiceError::invalid_argument(format!(
                "write a reason of at most {MAX_REASON} characters"
            )));
        }
        let official = editions::official(&self.pool, tournament.id).await?;
        let edition = self
            .edition_or_default(&self.pool, &tournament, None, DefaultEdition::Official, official)
            .await?;
        let mut connection = self.pool.acquire().await?;
        let found =
            match_invalidation::find(&mut connection, tournament.id, &filter, &named_matches).await;
        let matches = found.map_err(|error| refusal(&tournament, error))?;
        drop(connection);
        let preview = self.void_preview(edition.scope(), matches.clone()).await?;
        if request.apply {
            let mut transaction = self.pool.begin().await?;
            let db = &mut *transaction;
            lifecycle::lock_open(&mut *db, tournament.id).await?;
            // The second search includes matches that were reported after the preview.
            let found =
                match_invalidation::find(&mut *db, tournament.id, &filter, &named_matches).await;
            let matches = found.map_err(|error| refusal(&tournament, error))?;
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
            self.commit_change(transaction, principal, action, subject, Some(detail)).await?;
            self.changes.notify();
        }
        Ok(message(&tournament, &matches, edition.number, preview))
    }

    /// The leaderboard of an edition with and without these matches.
    async fn void_preview(
        &self,
        edition: EditionScope,
        matches: Vec<MatchNumber>,
    ) -> Result<Preview> {
        let pool = self.pool.clone();
        let games = self.games().clone();
        let preview =
            async move { match_invalidation::preview(&pool, &games, edition, &matches).await };
        Ok(rounds::replay_aside(preview).await?)
    }

    /// The requested worker and period.
    async fn void_filter(&self, request: &VoidMatchesRequest) -> Result<MatchFilter> {
        let worker = match request.worker.as_str() {
            "" => None,
            name => Some(self.find_worker(name).await?.name),
        };
        let from = request.from_us.map(parse_micros).transpose()?;
        let to = request.to_us.map(parse_micros).transpose()?;
        Ok(MatchFilter { worker, from, to })
    }
}

/// The numbers of matches of a tournament.
fn match_numbers(tournament: &Tournament, names: &[String]) -> Result<Vec<MatchNumber>> {
    let number = |name: &String| -> Result<MatchNumber> {
        let name: MatchName = name.parse()?;
        if name.tournament == tournament.name { Ok(name.number) } else { Err(unplayed(&name)) }
    };
    names.iter().map(number).collect()
}

/// The error for a match that cannot be void.
fn unplayed(name: &MatchName) -> ServiceError {
    let error = format!("match {name} was not played in this tournament");
    ServiceError::invalid_argument(error)
}

/// The refusal of a selection. It names the match that is wrong.
fn refusal(tournament: &Tournament, error: InvalidationError) -> ServiceError {
    match error {
        InvalidationError::Unplayed(id) => unplayed(&match_name(tournament, id.number)),
        error => error.into(),
    }
}

fn message(
    tournament: &Tournament,
    matches: &[MatchNumber],
    edition: i32,
    preview: Preview,
) -> VoidMatchesResponse {
    let Preview { game, missing, places, note } = preview;
    let columns = game.ranking_columns();
    let example = |number: &MatchNumber| match_name(tournament, *number).to_string();
    let texts = |score: &[i128]| {
        let part = |index: usize| score.get(index).copied().unwrap_or(0).to_string();
        (0..columns.len()).map(part).collect()
    };
    let places = places.into_iter().map(|RankChange { bot, now, without }| VoidStanding {
        bot,
        rank: rank_message(now.0),
        rank_without: rank_message(without.0),
        score: texts(&now.1),
        score_without: texts(&without.1),
    });
    VoidMatchesResponse {
        matches: i64::try_from(matches.len()).unwrap_or(i64::MAX),
        examples: matches.iter().take(MAX_NAMED).map(example).collect(),
        edition,
        missing: i64::try_from(missing).unwrap_or(i64::MAX),
        standings: places.collect(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        note: note.unwrap_or_default().to_owned(),
    }
}
