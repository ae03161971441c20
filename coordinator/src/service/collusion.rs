//! Collusion at tables, over the wire: looked for when an organiser asks.

use crate::access::Role;
use std::sync::Arc;

use arbiter_games::{Game, Seed};
use arbiter_proto::v1::{CollusionPair, FindCollusionRequest, FindCollusionResponse};
use arbiter_ranking::collusion::{
    self, CLAIM, Collusion, FALSE_DISCOVERIES, MAX_TABLES, Pair, Tables, TooManyTables,
};
use tokio::sync::Semaphore;

use super::{Caller, Result, Service, ServiceError, Which};
use crate::db::editions::{self, Edition, EditionState};
use crate::db::results;
use crate::db::tournaments::Tournament;
use crate::leaderboard_cache::Leaderboard;
use crate::tournament::episodes::round_of;

/// Pairs in an answer where no number is asked for, and at most.
const PAIRS: (u32, u32) = (20, 1000);

/// The search takes memory for all tables of an edition, so one is made after the other.
static ONE: Semaphore = Semaphore::const_new(1);

impl Service {
    /// Looks for bots that score more when a certain other bot sits at their table.
    pub(crate) async fn find_collusion(
        &self,
        caller: &Caller,
        request: FindCollusionRequest,
    ) -> Result<FindCollusionResponse> {
        caller.require(Role::Organiser)?;
        let tournament = self.tournament(&request.tournament).await?;
        let official = editions::official(&self.pool, tournament.id).await?;
        let edition = self.which(&tournament, request.edition, Which::Official, official).await?;
        let board = self.boards.get(&edition).await?;
        let found = if let Some(found) = self.collusion.get(edition.id, None) {
            found
        } else {
            let found = self.search(&tournament, &edition, &board.game).await?;
            // While an edition is played its results become more.
            if edition.state == EditionState::Complete {
                self.collusion.insert(edition.id, found)
            } else {
                Arc::new(found)
            }
        };
        let limit = if request.limit == 0 { PAIRS.0 } else { request.limit.min(PAIRS.1) };
        Ok(message(&board, &edition, &found, limit as usize))
    }

    /// Reads the results of an edition and searches them.
    async fn search(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        game: &Game,
    ) -> Result<Collusion> {
        let alone =
            ONE.acquire().await.map_err(|_| ServiceError::unavailable("the coordinator stops"))?;
        let mut tables = Tables::new();
        let mut results = 0_usize;
        let read = results::each_dealt(&self.pool, edition.id, |deal, played| {
            results += 1;
            // Later rounds of an episode are played with other chips than earlier ones.
            let stratum = if game.episodes.is_some() { round_of(deal) } else { 0 };
            tables.add(&played.outcome(), stratum)
        });
        read.await?.map_err(|TooManyTables| too_many(edition))?;
        if tables.is_empty() {
            return Err(nothing(tournament, edition, results));
        }
        let seed = public_seed(tournament, edition)?;
        let search = move || collusion::analyze(&tables, seed, PAIRS.1 as usize);
        let found = tokio::task::spawn_blocking(search).await;
        drop(alone);
        found.map_err(|_| ServiceError::unavailable("the coordinator stops"))
    }
}

/// What the draws are made from: public from the beginning, so that the search can be repeated.
fn public_seed(tournament: &Tournament, edition: &Edition) -> Result<Seed> {
    let hash: Result<[u8; 32], _> = tournament.seed_hash.as_slice().try_into();
    let hash = hash.map_err(|_| ServiceError::internal("a hash of a seed has 32 bytes"))?;
    Ok(Seed(hash).derive(&format!("collusion/{}", edition.number)))
}

fn too_many(edition: &Edition) -> ServiceError {
    ServiceError::failed_precondition(format!(
        "edition {} has more than {MAX_TABLES} tables, which are too many to search here",
        edition.number
    ))
}

/// Why there is nothing to search.
fn nothing(tournament: &Tournament, edition: &Edition, results: usize) -> ServiceError {
    let Tournament { name, .. } = tournament;
    ServiceError::failed_precondition(if results == 0 {
        format!("edition {} of {name} has no results yet; ask again when it has", edition.number)
    } else {
        format!(
            "{name} is played by two at a table: with nobody else to lose, collusion cannot be \
             told from playing badly; it is looked for at tables of three and more"
        )
    })
}

fn message(
    board: &Leaderboard,
    edition: &Edition,
    found: &Collusion,
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
        tables: found.tables as u64,
        tested: found.tested as u64,
        flagged: found.flagged as u64,
        false_discoveries: FALSE_DISCOVERIES,
        claim: CLAIM.to_owned(),
        pairs: found.pairs.iter().take(limit).map(pair).collect(),
    }
}
