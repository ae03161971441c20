//! Leaderboards, standings, and head-to-head results.

use super::endpoint::{Handler, RequestContext};
use super::endpoints::{GetHeadToHead, GetHistory, GetLeaderboard, GetStanding};
use super::format::ForfeitCounts;
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
        /// The rank, from 1. Tied bots share it.
        rank: u32;
        /// Whether another bot has the same rank.
        tied: bool;
        /// The bot's name.
        bot: String;
        /// The number of the version that played.
        version: i32;
        /// The number of matches.
        matches: i64;
        /// The exact sums, most significant component first, in decimal digits because they can
        /// exceed the range of JSON numbers.
        score: Vec<String>;
        /// The mean of the first component per match.
        mean: f64;
        /// Half the width of the 95 % confidence interval of the mean; null after a single match.
        interval95: Option<f64> = message.margin;
        /// The number of forfeits by kind.
        forfeits: ForfeitCounts = ForfeitCounts::new(&message.forfeits);
        /// The number of invalid replies that did not cause a forfeit.
        bad_answers: i64;
    }
}

impl RequestContext {
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
        let request =
            v1::GetRankingRequest { leaderboard: board, offset, limit: limit.0, name_contains: q };
        let response = context.service.get_ranking(context.caller(), request).await?;
        let shown = u32::try_from(response.standings.len()).unwrap_or(u32::MAX);
        let has_more = offset.saturating_add(shown) < response.bots && shown > 0;
        let next = offset.saturating_add(shown);
        // All pages are of the same edition, even if another one becomes official meanwhile.
        let pinned = with_parameter(&context.uri, "edition", response.edition);
        let pinned = pinned.parse().unwrap_or_else(|_| context.uri.clone());
        let next = has_more.then(|| with_parameter(&pinned, "offset", next));
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
