//! The search for collusion at tables, for organisers.

use std::sync::Arc;

use arbiter_games::Game;
use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use arbiter_ranking::collusion::{
    self, CLAIM, Collusion, FALSE_DISCOVERIES, MAX_TABLES, Pair, Tables, TooManyTables,
};
use tokio::sync::Semaphore;

use super::{Caller, DefaultEdition, Result, Service, ServiceError};
use crate::access::Role;
use crate::background;
use crate::db::editions::{self, Edition, EditionState};
use crate::db::results;
use crate::db::tournaments::Tournament;
use crate::leaderboard_cache::Leaderboard;
use crate::tournament::episode_rounds::round_of;

/// The number of pairs in a response if the request has no limit.
const DEFAULT_PAIRS: u32 = 20;
/// Maximum number of pairs in a response.
const MAX_PAIRS: u32 = 1000;

/// Only one search runs at a time, because it has all tables of an edition in memory.
static SEARCH: Semaphore = Semaphore::const_new(1);

impl Service {
    /// Finds bots that score more when a certain other bot sits at their table.
    pub(crate) async fn find_collusion(
        &self,
        caller: &Caller,
        request: FindCollusionRequest,
    ) -> Result<FindCollusionResponse> {
        caller.require(Role::Organiser)?;
        let tournament = self.tournament(&request.tournament).await?;
        let official = editions::official(&self.pool, tournament.id).await?;
        let edition = self
            .edition_or_default(
                &self.pool,
                &tournament,
                request.edition,
                DefaultEdition::Official,
                official,
            )
            .await?;
        let board = self.boards.get(&edition).await?;
        let collusion = if let Some(collusion) = self.collusion.get(&edition.id, None) {
            collusion
        } else {
            let collusion = self.search(&tournament, &edition, &board.game).await?;
            // Results of a running edition are incomplete.
            if edition.state == EditionState::Complete {
                self.collusion.insert(edition.id, collusion)
            } else {
                Arc::new(collusion)
            }
        };
        let limit = if request.limit == 0 { DEFAULT_PAIRS } else { request.limit.min(MAX_PAIRS) };
        Ok(message(&board, &edition, &collusion, limit as usize))
    }

    /// Reads the results of an edition and searches them.
    async fn search(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        game: &Game,
    ) -> Result<Collusion> {
        let permit = SEARCH.acquire().await.map_err(|_| ServiceError::stopping())?;
        let mut tables = Tables::new();
        let mut results = 0_usize;
        let scope = edition.scope();
        let reading = results::each_with_seed_key(&self.pool, scope, |result| {
            results += 1;
            // The chips of an episode differ from round to round.
            let stratum = if game.episodes.is_some() { round_of(result.seed_key) } else { 0 };
            tables.add(&result.played.outcome(), stratum)
        });
        reading.await?.map_err(|TooManyTables| too_many(edition))?;
        if tables.is_empty() {
            return Err(no_tables(tournament, edition, results));
        }
        let seed = tournament.public_seed(&format!("collusion/{}", edition.number))?;
        let search = move || {
            let _permit = permit;
            collusion::analyze(&tables, seed, MAX_PAIRS as usize)
        };
        let found = background::compute("collusion", search).await;
        found.map(|(collusion, _)| collusion).map_err(ServiceError::internal)
    }
}

fn too_many(edition: &Edition) -> ServiceError {
    ServiceError::failed_precondition(format!(
        "edition {} has more than {MAX_TABLES} tables, too many to search",
        edition.number
    ))
}

/// Why there is nothing to search.
fn no_tables(tournament: &Tournament, edition: &Edition, results: usize) -> ServiceError {
    let Tournament { name, .. } = tournament;
    ServiceError::failed_precondition(if results == 0 {
        format!("edition {} of {name} has no results yet; try again later", edition.number)
    } else {
        format!(
            "the matches of edition {} of {name} have fewer than three seats; the search compares \
             bots at tables of three or more, so there is nothing to search",
            edition.number
        )
    })
}

fn message(
    board: &Leaderboard,
    edition: &Edition,
    collusion: &Collusion,
    limit: usize,
) -> FindCollusionResponse {
    let name = |entrant| board.roster.get(entrant).map(|bot| bot.name.clone()).unwrap_or_default();
    let pair = |pair: &Pair| CollusionPair {
        bot: name(pair.bot),
        partner: name(pair.partner),
        together: pair.together as u64,
        mean_with: pair.mean_with,
        mean_without: pair.mean_without,
        difference: pair.difference,
        partner_difference: pair.partner_difference,
        p: pair.p,
        q: pair.q,
        flagged: pair.flagged,
    };
    FindCollusionResponse {
        edition: edition.number,
        tables: collusion.tables as u64,
        tested: collusion.tested as u64,
        flagged: collusion.flagged as u64,
        false_discoveries: FALSE_DISCOVERIES,
        claim: CLAIM.to_owned(),
        pairs: collusion.pairs.iter().take(limit).map(pair).collect(),
    }
}
