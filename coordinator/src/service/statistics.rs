//! What can be concluded from the results of an edition. It is public.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::v1::{
    BotStatistics, GetStatisticsRequest, GetStatisticsResponse, LeaderboardRef, PairStatistics,
    RankSet,
};
use arbiter_ranking::RankedContestant;
use arbiter_ranking::statistics::{Basis, NoInterval, Precision};

use super::counted_results::EditionStatistics;
use super::rankings::{page_limit, places_with_text, rank_message};
use super::statistics_cache::{MAX_MATCHES, RankedStatistics};
use super::{Caller, DefaultEdition, Result, Service, ServiceError};
use crate::db::editions::Edition;
use crate::db::tournaments::{self, Tournament};
use crate::leaderboard_cache::Leaderboard;

/// How long a request waits for the first statistics of an edition.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of bots of a page that are compared with each other.
const MAX_COMPARED: usize = 20;

impl Service {
    pub(crate) async fn get_statistics(
        &self,
        caller: &Caller,
        request: GetStatisticsRequest,
    ) -> Result<GetStatisticsResponse> {
        let limit = page_limit(request.limit);
        self.statistics_page(caller, request, limit).await
    }

    /// The statistics of all bots of an edition, from one computation.
    pub(crate) async fn all_statistics(
        &self,
        caller: &Caller,
        leaderboard: LeaderboardRef,
    ) -> Result<GetStatisticsResponse> {
        let leaderboard = Some(leaderboard);
        let request = GetStatisticsRequest { leaderboard, ..GetStatisticsRequest::default() };
        self.statistics_page(caller, request, usize::MAX).await
    }

    async fn statistics_page(
        &self,
        caller: &Caller,
        request: GetStatisticsRequest,
        limit: usize,
    ) -> Result<GetStatisticsResponse> {
        let board = request.leaderboard;
        let (edition, official) = self.edition_of(board, DefaultEdition::Official, caller).await?;
        self.require_results(&edition, caller).await?;
        let board = self.boards.get(&edition).await?;
        let ranked = self.first_statistics(&edition, &board).await?;
        // Not the newest leaderboard: all pages are in the same order.
        let RankedStatistics { all: statistics, board } = &*ranked;
        let places = places_with_text(board, &request.name_contains);
        let page = places.iter().skip(request.offset as usize).take(limit);
        let page: Vec<_> = page.copied().collect();
        let all = &statistics.statistics;
        let ranked = board.places.iter().filter(|place| place.rank.is_some()).count();
        let tournament = tournaments::get(&self.pool, edition.tournament).await?;
        let has_official = tournament.as_ref().is_some_and(Tournament::has_official_edition);
        Ok(GetStatisticsResponse {
            edition: edition.number,
            official: has_official && official == Some(edition.id),
            state: edition.state.as_str().to_owned(),
            rehearsal: tournament.is_some_and(|tournament| tournament.rehearsal.is_some()),
            ranked: u32::try_from(ranked).unwrap_or(u32::MAX),
            ranks_by_schedule: is_bracket(board),
            // The same results give the same figures.
            computation: format!("{} {}", all.matches, board.basis()),
            planned: edition.matches,
            matches: all.matches,
            distinct_matches: all.distinct_matches,
            blocks: all.blocks,
            basis: match all.basis {
                Basis::Seeds => "seeds",
                Basis::Tables => "tables",
            }
            .to_owned(),
            unit: if board.game.episodes.is_some() { "episode" } else { "match" }.to_owned(),
            column: board.game.columns.first().map(ToString::to_string).unwrap_or_default(),
            bots: u32::try_from(places.len()).unwrap_or(u32::MAX),
            statistics: page.iter().map(|place| bot(board, place, statistics)).collect(),
            pairs: if request.pairs && !is_bracket(board) {
                pairs(board, &page, statistics)
            } else {
                Vec::new()
            },
        })
    }

    /// The statistics of an edition. Waits for the first ones.
    async fn first_statistics(
        &self,
        edition: &Edition,
        board: &Arc<Leaderboard>,
    ) -> Result<Arc<RankedStatistics>> {
        if edition.matches > MAX_MATCHES {
            return Err(ServiceError::failed_precondition(format!(
                "edition {} has {} matches: statistics are computed for editions of at most \
                 {MAX_MATCHES}; export the edition and compute them there",
                edition.number, edition.matches
            )));
        }
        self.statistics.wait(edition, board, PATIENCE).await
    }

    /// The newest statistics of an edition, if there are any that the caller may see. Computes
    /// newer ones in the background.
    pub(super) fn newest_statistics(
        &self,
        tournament: &Tournament,
        edition: &Edition,
        board: &Arc<Leaderboard>,
        caller: &Caller,
    ) -> Option<Arc<RankedStatistics>> {
        let are_visible = self.require_results_of(tournament, edition, caller).is_ok();
        if edition.matches > MAX_MATCHES || !are_visible {
            return None;
        }
        self.statistics.newest(edition, board)
    }
}

impl EditionStatistics {
    /// The possible ranks of an entrant. None in a knockout, whose ranks do not follow from means.
    pub(super) fn rank_set(&self, place: &RankedContestant) -> Option<RankSet> {
        let contestant = &place.contestant;
        let index = self.statistics.index(contestant.entrant)?;
        let set = self.statistics.entrants[index].rank_set;
        let (best, worst) = set.filter(|_| contestant.plan_rank.is_none())?;
        let rank = |rank| u32::try_from(rank).unwrap_or(u32::MAX);
        Some(RankSet { best: rank(best), worst: rank(worst) })
    }
}

/// Whether ranks follow from a bracket.
fn is_bracket(board: &Leaderboard) -> bool {
    board.places.iter().any(|place| place.contestant.plan_rank.is_some())
}

fn bot(board: &Leaderboard, place: &RankedContestant, all: &EditionStatistics) -> BotStatistics {
    let entrant = place.contestant.entrant;
    let info = board.roster.get(entrant);
    let index = all.statistics.index(entrant);
    let known = index.map(|index| (&all.statistics.entrants[index], all.ratings[index]));
    let rating = known.and_then(|(_, rating)| rating);
    let known = known.map(|(known, _)| known);
    let no_interval = known.map_or("no_matches", |known| match known.precision {
        Precision::Error { .. } | Precision::Exact => "",
        Precision::Unknown(NoInterval::NoMatches) => "no_matches",
        Precision::Unknown(NoInterval::OneSeed) => "one_seed",
        Precision::Unknown(NoInterval::EqualOutcomes) => "equal_outcomes",
    });
    let has_error = known.is_some_and(|known| matches!(known.precision, Precision::Error { .. }));
    let is_league = place.contestant.plan_rank.is_none();
    BotStatistics {
        bot: info.map(|info| info.name.clone()).unwrap_or_default(),
        version: info.map_or(0, |info| info.version),
        rank: rank_message(place.rank),
        tied: place.tied,
        matches: known.map_or(0, |known| known.matches),
        distinct_matches: known.map_or(0, |known| known.distinct_matches),
        mean: known.map_or(0.0, |known| known.mean),
        margin: known.and_then(|known| known.margin),
        no_interval: no_interval.to_owned(),
        rank_set: all.rank_set(place),
        top: known.filter(|_| is_league).map(|known| known.top.clone()).unwrap_or_default(),
        matches_needed: known.filter(|_| is_league).and_then(|known| known.matches_needed),
        rating: rating.map(|rating| rating.elo),
        // Equal outcomes show no chance in ratings either.
        rating_margin: rating.and_then(|rating| rating.margin).filter(|_| has_error),
    }
}

fn pairs(
    board: &Leaderboard,
    page: &[&RankedContestant],
    all: &EditionStatistics,
) -> Vec<PairStatistics> {
    let page = &page[..page.len().min(MAX_COMPARED)];
    let name = |place: &RankedContestant| {
        let info = board.roster.get(place.contestant.entrant);
        info.map(|info| info.name.clone()).unwrap_or_default()
    };
    let mut pairs = Vec::new();
    for (index, first) in page.iter().enumerate() {
        for second in &page[index + 1..] {
            let entrants = [first, second].map(|place| place.contestant.entrant);
            let Some(pair) = all.statistics.pair(entrants[0], entrants[1]) else { continue };
            pairs.push(PairStatistics {
                bot: name(first),
                other: name(second),
                difference: pair.difference,
                margin: pair.margin,
                probability: pair.probability,
                matches_needed: pair.matches_needed,
            });
        }
    }
    pairs
}
