//! Leaderboards, and what they say of one bot.

use super::answer::all;
use super::paging::{Page, following};
use super::problem::Problem;
use super::question::{Answer, Asker};
use super::questions::{GetHistory, GetMeetings, GetPlace, GetRanking};
use super::values::Forfeits;
use crate::db::editions::EditionState;
use crate::service::Which;
use arbiter_proto::v1;

answer! {
    /// A page of a leaderboard.
    Ranking(found: v1::GetRankingResponse) {
        /// The number of the edition.
        edition: i32;
        /// Whether it is the official one.
        official: bool;
        /// Matches planned so far.
        planned: i64 = found.matches;
        /// Matches in the standings.
        counted: i64;
        /// What the numbers of a score are called.
        columns: Vec<String>;
        /// Bots that the filter lets through, on this page and others.
        bots: u32;
        /// The edition that is being played, if it is not this one.
        provisional: Option<Provisional> = found.running.map(Provisional::from);
        /// The places of the page, the best first.
        items: Vec<Place> = all(found.standings);
        /// The address of the page that follows; null on the last one.
        next: Option<String> = None;
    }
}

answer! {
    /// How far an edition is that is being played.
    Provisional(found: v1::EditionProgress) {
        /// Its number.
        edition: i32;
        /// Matches planned so far.
        planned: i64 = found.matches;
        /// Matches in its standings.
        counted: i64;
    }
}

answer! {
    /// A place in a leaderboard.
    Place(found: v1::Standing) {
        /// From 1; equals share it.
        rank: u32;
        /// Whether somebody else has it too.
        tied: bool;
        /// The bot's name.
        bot: String;
        /// The number of the version that played.
        version: i32;
        /// Matches.
        matches: i64;
        /// Exact sums, the most important first, in decimal digits: they may be too great for a number.
        score: Vec<String>;
        /// The mean of the first one over the matches.
        mean: f64;
        /// Half the width of its 95 % interval; null after a single match.
        interval95: Option<f64> = found.margin;
        /// Forfeits by kind.
        forfeits: Forfeits = Forfeits::new(&found.forfeits);
        /// Bad answers that were no forfeits.
        bad_answers: i64;
    }
}

impl Asker {
    /// What answers about an edition follow from, if it is complete: nothing of it changes then.
    pub(super) async fn basis(
        &self,
        tournament: &str,
        edition: Option<i32>,
        default: Which,
    ) -> Result<Option<String>, Problem> {
        let board = v1::LeaderboardRef { tournament: tournament.to_owned(), edition };
        // What cannot be told is refused by the answer itself, which may be about the next edition.
        let found = self.service.edition_of(Some(board), default, self.caller()).await;
        let Ok((found, _)) = found else { return Ok(None) };
        let complete = found.state == EditionState::Complete;
        Ok(complete.then(|| format!("{} {}", found.id, found.counted)))
    }
}

impl Answer for GetRanking {
    async fn answer(self, asker: &Asker) -> Result<Ranking, Problem> {
        let Self { tournament, edition, q, offset, limit } = self;
        let board = Some(v1::LeaderboardRef { tournament, edition });
        let asked =
            v1::GetRankingRequest { leaderboard: board, offset, limit: limit.0, name_contains: q };
        let found = asker.service.get_ranking(asker.caller(), asked).await?;
        let shown = u32::try_from(found.standings.len()).unwrap_or(u32::MAX);
        let more = offset.saturating_add(shown) < found.bots && shown > 0;
        let next = offset.saturating_add(shown);
        // What follows is of the same edition, whichever is the official one by then.
        let pinned = following(&asker.uri, "edition", found.edition);
        let pinned = pinned.parse().unwrap_or_else(|_| asker.uri.clone());
        let next = more.then(|| following(&pinned, "offset", next));
        Ok(Ranking { next, ..found.into() })
    }
}

answer! {
    /// A place in the leaderboard of an edition.
    Placed(found: v1::GetStandingResponse) {
        /// The number of the edition.
        edition: i32;
        /// The place.
        place: Place = found.standing.unwrap_or_default().into();
    }
}

forward! {
    GetPlace { tournament, bot, edition } => get_standing(v1::GetStandingRequest {
        leaderboard: Some(v1::LeaderboardRef { tournament, edition }),
        bot,
    });
}

forward! {
    pages
    GetHistory { tournament, bot } =>
        get_history(v1::GetHistoryRequest { tournament, bot }).standings;
}

answer! {
    /// What a bot made of its matches against another.
    Meeting(found: v1::HeadToHead) {
        /// The other's name.
        against: String = found.opponent;
        /// Matches at the same table.
        matches: i64;
        /// Those with the higher score.
        won: i64;
        /// Those with the same score.
        drawn: i64;
        /// Those with the lower score.
        lost: i64;
    }
}

impl Answer for GetMeetings {
    async fn basis(&self, asker: &Asker) -> Result<Option<String>, Problem> {
        asker.basis(&self.tournament, self.edition, Which::Official).await
    }

    async fn answer(self, asker: &Asker) -> Result<Page<Meeting>, Problem> {
        let Self { tournament, bot, edition, offset, limit } = self;
        let board = Some(v1::LeaderboardRef { tournament, edition });
        let asked = v1::GetHeadToHeadRequest { leaderboard: board, bot };
        let found = asker.service.get_head_to_head(asker.caller(), asked).await?.results;
        Ok(asker.page(found, offset, limit))
    }
}
