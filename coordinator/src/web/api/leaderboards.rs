//! Leaderboards, standings, and head-to-head results.

use super::endpoint::{Handler, RequestContext};
use super::endpoints::{GetHeadToHead, GetHistory, GetLeaderboard, GetStanding, GetStatistics};
use super::format::{ForfeitCounts, non_empty, rank};
use super::pagination::{Page, with_parameter};
use super::problem::Problem;
use super::resource::all;
use crate::db::editions::EditionState;
use crate::service::DefaultEdition;
use arbiter_proto::v1;

resource! {
    /// A page of a leaderboard.
    Leaderboard(message: v1::GetRankingResponse) {
        /// The number of the edition.
        edition: i32;
        /// Whether it is the official leaderboard.
        official: bool;
        /// The number of matches planned so far.
        planned: i64 = message.matches;
        /// The number of matches in the standings.
        counted: i64;
        /// The names of the components of a score.
        columns: Vec<String>;
        /// The number of bots that match the filter, on all pages.
        bots: u32;
        /// The running edition, if it is not this one.
        provisional: Option<ProvisionalEdition> = message.running.map(ProvisionalEdition::from);
        /// The standings on this page, best first.
        items: Vec<Standing> = all(message.standings);
        /// The URL of the next page; null on the last page.
        next: Option<String> = None;
    }
}

resource! {
    /// The progress of a running edition.
    ProvisionalEdition(message: v1::EditionProgress) {
        /// Its number.
        edition: i32;
        /// The number of matches planned so far.
        planned: i64 = message.matches;
        /// The number of matches in its standings.
        counted: i64;
    }
}

resource! {
    /// A row of a leaderboard.
    Standing(message: v1::Standing) {
        /// The rank, from 1. Tied bots share it. Null for a house bot that has no rank.
        rank: Option<u32> = rank(message.rank);
        /// Whether another bot has the same rank.
        tied: bool;
        /// The bot's name.
        bot: String;
        /// Whether it is a house bot.
        house: bool = message.owner.is_empty();
        /// The number of the version that played.
        version: i32;
        /// The number of matches.
        matches: i64;
        /// The exact sums, most significant component first, in decimal digits because they can
        /// exceed the range of JSON numbers.
        score: Vec<String>;
        /// The mean of the first component: per match, or per episode in games with episodes.
        mean: f64;
        /// Always null: what can be concluded is in `statistics`.
        interval95: Option<f64> = message.margin;
        /// The number of forfeits by kind.
        forfeits: ForfeitCounts = ForfeitCounts::new(&message.forfeits);
        /// The number of bad replies that did not cause a forfeit.
        bad_answers: i64;
        /// The name of its owner; null for a house bot.
        owner: Option<String> = non_empty(message.owner);
    }
}

resource! {
    /// The ranks that a bot may have in the long run, with fresh seeds and the same field. All rank
    /// sets of an edition hold together with a probability of 95 %.
    RankSet(message: v1::RankSet) {
        /// The best rank.
        best: u32;
        /// The worst rank.
        worst: u32;
    }
}

resource! {
    /// What can be concluded from the results of an edition: who is better, and how sure.
    Statistics(message: v1::GetStatisticsResponse) {
        /// The number of the edition.
        edition: i32;
        /// Whether it is the edition of the official leaderboard.
        official: bool;
        /// The number of matches planned so far.
        planned: i64;
        /// The number of matches that the statistics consider.
        matches: u64;
        /// The number of different ones among them: same seats, same transcript.
        distinct_matches: u64;
        /// The number of blocks of matches that share a seed: the observations.
        blocks: u64;
        /// What the intervals are for: `seeds` (fresh seeds, the same pairs or tables) or `tables`
        /// (fresh seeds and freshly drawn tables).
        basis: String;
        /// What a mean is of: `match` or `episode`.
        unit: String;
        /// The component of the score whose mean is taken.
        column: String;
        /// What the figures and ranks were computed from. Pages of a running edition belong
        /// together if they have the same value.
        computation: String;
        /// Whether ranks follow from the schedule, as in a knockout. Then there are no possible
        /// ranks and no probabilities.
        ranks_by_schedule: bool;
        /// The number of bots that match the filter, on all pages.
        bots: u32;
        /// The bots on this page, best first.
        items: Vec<BotStatistics> = all(message.statistics);
        /// Each two of the first 20 bots of this page, if `pairs` asks for them.
        pairs: Vec<PairStatistics> = all(message.pairs);
        /// The URL of the next page; null on the last page.
        next: Option<String> = None;
    }
}

resource! {
    /// What can be concluded about a bot.
    BotStatistics(message: v1::BotStatistics) {
        /// The rank on the leaderboard, from 1. Tied bots share it. Null for a house bot that has
        /// no rank.
        rank: Option<u32> = rank(message.rank);
        /// Whether another bot has the same rank.
        tied: bool;
        /// The bot's name.
        bot: String;
        /// The number of the version that played.
        version: i32;
        /// The number of matches.
        matches: u64;
        /// The number of different ones among them.
        distinct_matches: u64;
        /// The mean of the first component.
        mean: f64;
        /// Half the width of the 95 % interval of the mean alone. It is 0 if fresh seeds repeat the
        /// same matches, and null if `no_interval` has a reason.
        interval95: Option<f64> = message.margin;
        /// Why there is no interval: `no_matches`, `one_seed` or `equal_outcomes`; or empty.
        no_interval: String;
        /// The possible ranks in the long run.
        rank_set: Option<RankSet> = message.rank_set.map(RankSet::from);
        /// The probabilities that it is among the best 1, 2, … 16.
        top: Vec<f64>;
        /// The number of further matches after which its rank should be certain.
        matches_needed: Option<u64>;
        /// The rating on the scale of Elo. An average bot has 1500.
        rating: Option<f64>;
        /// Half the width of the 95 % interval of the rating.
        rating_interval95: Option<f64> = message.rating_margin;
    }
}

resource! {
    /// What can be concluded about two bots.
    PairStatistics(message: v1::PairStatistics) {
        /// The first bot.
        bot: String;
        /// The second bot.
        other: String;
        /// The mean of the first minus that of the second.
        difference: f64;
        /// Half the width of its interval. All intervals of the edition hold together with a
        /// probability of 95 %.
        interval95: Option<f64> = message.margin;
        /// The probability that the first bot is above the second one in the long run.
        probability: Option<f64>;
        /// The number of further matches of each after which they can be told apart.
        matches_needed: Option<u64>;
    }
}

impl Handler for GetStatistics {
    async fn handle(self, context: &RequestContext) -> Result<Statistics, Problem> {
        let Self { tournament, edition, q, pairs, offset, limit } = self;
        let request = v1::GetStatisticsRequest {
            leaderboard: Some(v1::LeaderboardRef { tournament, edition }),
            offset,
            limit: limit.0,
            name_contains: q,
            pairs,
        };
        let response = context.service.get_statistics(context.caller(), request).await?;
        let shown = response.statistics.len();
        let next = context.next_page(response.edition, (offset, shown), response.bots);
        Ok(Statistics { next, ..response.into() })
    }
}

impl RequestContext {
    /// The URL of the page after `shown` of `all` rows from `offset` on; None after the last page.
    fn next_page(&self, edition: i32, (offset, shown): (u32, usize), all: u32) -> Option<String> {
        let shown = u32::try_from(shown).unwrap_or(u32::MAX);
        let next = offset.saturating_add(shown);
        // All pages are of the same edition, even if another one becomes official meanwhile.
        let pinned = with_parameter(&self.uri, "edition", edition);
        let pinned = pinned.parse().unwrap_or_else(|_| self.uri.clone());
        (next < all && shown > 0).then(|| with_parameter(&pinned, "offset", next))
    }

    /// The basis of the `ETag` for resources of an edition, if it is complete and so never changes.
    pub(super) async fn etag_basis(
        &self,
        tournament: &str,
        edition: Option<i32>,
        default: DefaultEdition,
    ) -> Result<Option<String>, Problem> {
        let board = v1::LeaderboardRef { tournament: tournament.to_owned(), edition };
        // Errors are ignored here: the handler reports them, or answers about the next edition.
        let result = self.service.edition_of(Some(board), default, self.caller()).await;
        let Ok((edition, _)) = result else { return Ok(None) };
        let is_complete = edition.state == EditionState::Complete;
        Ok(is_complete.then(|| format!("{} {}", edition.id, edition.counted)))
    }
}

impl Handler for GetLeaderboard {
    async fn handle(self, context: &RequestContext) -> Result<Leaderboard, Problem> {
        let Self { tournament, edition, q, offset, limit } = self;
        let board = Some(v1::LeaderboardRef { tournament, edition });
        let request = v1::GetRankingRequest {
            leaderboard: board,
            offset,
            limit: limit.0,
            name_contains: q,
            rank_sets: false,
        };
        let response = context.service.get_ranking(context.caller(), request).await?;
        let shown = response.standings.len();
        let next = context.next_page(response.edition, (offset, shown), response.bots);
        Ok(Leaderboard { next, ..response.into() })
    }
}

resource! {
    /// The standing of a bot in an edition.
    EditionStanding(message: v1::GetStandingResponse) {
        /// The number of the edition.
        edition: i32;
        /// The standing.
        standing: Standing = message.standing.unwrap_or_default().into();
    }
}

forward! {
    GetStanding { tournament, bot, edition } => get_standing(v1::GetStandingRequest {
        leaderboard: Some(v1::LeaderboardRef { tournament, edition }),
        bot,
    });
}

forward! {
    pages
    GetHistory { tournament, bot } =>
        get_history(v1::GetHistoryRequest { tournament, bot }).standings;
}

resource! {
    /// The results of a bot against another bot.
    HeadToHead(message: v1::HeadToHead) {
        /// The opponent's name.
        against: String = message.opponent;
        /// The number of matches in which both played.
        matches: i64;
        /// Matches with the higher score.
        won: i64;
        /// Matches with the same score.
        drawn: i64;
        /// Matches with the lower score.
        lost: i64;
    }
}

impl Handler for GetHeadToHead {
    async fn etag_basis(&self, context: &RequestContext) -> Result<Option<String>, Problem> {
        context.etag_basis(&self.tournament, self.edition, DefaultEdition::Official).await
    }

    async fn handle(self, context: &RequestContext) -> Result<Page<HeadToHead>, Problem> {
        let Self { tournament, bot, edition, offset, limit } = self;
        let board = Some(v1::LeaderboardRef { tournament, edition });
        let request = v1::GetHeadToHeadRequest { leaderboard: board, bot };
        let results = context.service.get_head_to_head(context.caller(), request).await?.results;
        Ok(context.page(results, offset, limit))
    }
}
