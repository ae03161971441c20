//! Leaderboards, single standings, head-to-head results and histories. They are public.

use arbiter_games::Game;
use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::ids::{EditionId, TokenId};
use arbiter_proto::v1::{
    self, EditionProgress, GetHeadToHeadRequest, GetHeadToHeadResponse, GetHistoryRequest,
    GetHistoryResponse, GetRankingRequest, GetRankingResponse, GetStandingRequest,
    GetStandingResponse, HeadToHead, Standing,
};
use arbiter_ranking::Entrant;
use arbiter_ranking::{self as ranking, HeadToHeads, PairFilter, Tally};
use sqlx::PgExecutor;
use std::sync::Arc;

use super::entry_state::cancel_notice;
use super::leaderboard_freeze::freeze_notice;
use super::{Caller, DefaultEdition, Result, Service, ServiceError, TournamentHeading};
use crate::db::editions::{self, Edition, EditionState};
use crate::db::standings;
use crate::db::standings::PastStanding;
use crate::db::tokens;
use crate::db::tournaments::{self, Tournament};
use crate::leaderboard_cache::Leaderboard;

/// The number of places on a page if the request has no limit.
const DEFAULT_PLACES: u32 = 100;
/// Maximum number of places on a page.
const MAX_PLACES: u32 = 1000;
/// Maximum number of matches of an edition whose head-to-head results are counted on request. The
/// query reads all of them.
const MAX_HEAD_TO_HEAD: i64 = 5_000_000;

impl Service {
    pub(crate) async fn get_standing(
        &self,
        caller: &Caller,
        request: GetStandingRequest,
    ) -> Result<GetStandingResponse> {
        Ok(self.standing_with_status(caller, request).await?.0)
    }

    /// The standing of a bot, and what the results of its edition are for the caller.
    pub(crate) async fn standing_with_status(
        &self,
        caller: &Caller,
        GetStandingRequest { leaderboard, bot }: GetStandingRequest,
    ) -> Result<(GetStandingResponse, EditionStatus)> {
        let ShownEdition { tournament, edition, official } =
            self.shown_edition(leaderboard, DefaultEdition::Official, caller).await?;
        let board = self.boards.get(&edition).await?;
        let entrant = self.entrant(caller, edition.tournament, &board.roster, &bot).await?;
        let ranked = board.place(entrant).ok_or_else(|| ServiceError::missing("bot", &bot))?;
        let standing = Some(place(&board, ranked));
        let columns = board.game.ranking_columns().into_iter().map(str::to_owned).collect();
        let is_official = tournament.has_official_edition() && official == Some(edition.id);
        let is_rehearsal = tournament.rehearsal.is_some();
        let status = EditionStatus::of(is_official, edition.state.as_str(), is_rehearsal);
        Ok((GetStandingResponse { edition: edition.number, standing, columns }, status))
    }

    pub(crate) async fn get_head_to_head(
        &self,
        caller: &Caller,
        GetHeadToHeadRequest { leaderboard: board, bot }: GetHeadToHeadRequest,
    ) -> Result<GetHeadToHeadResponse> {
        let (edition, board) = self.leaderboard(caller, board.unwrap_or_default()).await?;
        let entrant = self.entrant(caller, edition.tournament, &board.roster, &bot).await?;
        let meetings = self.head_to_heads(&edition, PairFilter::One(entrant), caller).await?;
        let mut results: Vec<_> = board
            .roster
            .iter()
            .filter_map(|(other, named)| {
                let meeting = meetings.between(entrant, other).filter(|_| other != entrant)?;
                Some(HeadToHead {
                    opponent: named.name.clone(),
                    matches: meeting.matches,
                    won: meeting.won,
                    drawn: meeting.drawn,
                    lost: meeting.lost,
                })
            })
            .collect();
        results.sort_by(|first, second| first.opponent.cmp(&second.opponent));
        Ok(GetHeadToHeadResponse { results })
    }

    pub(crate) async fn get_history(
        &self,
        caller: &Caller,
        GetHistoryRequest { tournament, bot }: GetHistoryRequest,
    ) -> Result<GetHistoryResponse> {
        let tournament = self.tournament(&tournament).await?;
        let visibility = self.visibility(&tournament, caller)?;
        let row = self.bot(caller, tournament.id, &bot).await?;
        let owner = match row.owner {
            Some(owner) => tokens::get(&self.pool, TokenId(owner)).await?,
            None => None,
        };
        let owner = owner.map(|token| token.name).unwrap_or_default();
        let past = standings::of_bot(&self.pool, row.id, visibility.frozen).await?;
        let editions: Vec<_> = past.iter().map(|standing| standing.edition).collect();
        let game = tournament.game(self.queue.games());
        let game = game.map_err(|error| ServiceError::internal(error.to_string()))?;
        let episodes = tournament.episodes().map(i64::from);
        let _permit = self.permit(caller).await?;
        let ranks = self.boards.ranks(&game, &editions).await?;
        let places = past.into_iter().filter_map(
            |PastStanding { edition, number, entrant, version, tally }| {
                let (rank, tied) = ranks.get(&edition)?.of(entrant)?;
                let mean = tally.mean_over(episodes.unwrap_or(tally.matches)).unwrap_or(0.0);
                let sums = standing(&game, mean, (row.name.clone(), version), &tally);
                let owner = owner.clone();
                let place = Standing { rank: rank_message(rank), tied, owner, ..sums };
                Some(GetStandingResponse {
                    edition: number,
                    standing: Some(place),
                    columns: Vec::new(),
                })
            },
        );
        Ok(GetHistoryResponse { standings: places.collect() })
    }
}

impl Service {
    /// The requested leaderboard and its edition.
    pub(crate) async fn leaderboard(
        &self,
        caller: &Caller,
        board: v1::LeaderboardRef,
    ) -> Result<(Edition, Arc<Leaderboard>)> {
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Official, caller).await?;
        let board = self.boards.get(&edition).await?;
        Ok((edition, board))
    }

    /// The head-to-head results of one or all entrants of an edition.
    pub(crate) async fn head_to_heads(
        &self,
        edition: &Edition,
        pairs: PairFilter,
        caller: &Caller,
    ) -> Result<HeadToHeads> {
        if edition.matches > MAX_HEAD_TO_HEAD {
            return Err(ServiceError::failed_precondition(format!(
                "edition {} has {} matches: head-to-head results are counted in editions of at most \
                 {MAX_HEAD_TO_HEAD}; export the edition and count there",
                edition.number, edition.matches
            )));
        }
        self.require_results(edition, caller).await?;
        let _permit = self.permit(caller).await?;
        Ok(self.queue.head_to_heads(edition.scope(), pairs).await?)
    }

    /// A page of a leaderboard.
    pub(crate) async fn get_ranking(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<GetRankingResponse> {
        Ok(self.ranking_page(caller, request).await?.0)
    }

    /// A page of a leaderboard, with the heading of its tournament.
    pub(crate) async fn ranking_page(
        &self,
        caller: &Caller,
        request: GetRankingRequest,
    ) -> Result<(GetRankingResponse, TournamentHeading)> {
        let board = request.leaderboard.clone();
        let ShownEdition { tournament, edition, official } =
            self.shown_edition(board, DefaultEdition::Official, caller).await?;
        let board = self.boards.get(&edition).await?;
        let statistics = if request.rank_sets {
            self.newest_statistics(&tournament, &edition, &board, caller)
        } else {
            None
        };
        let rank_set = |place: &ranking::RankedContestant| statistics.as_ref()?.all.rank_set(place);
        let places = places_with_text(&board, &request.name_contains);
        let limit = page_limit(request.limit);
        let shown = places.iter().skip(request.offset as usize).take(limit);
        // One edition of a tournament runs at a time.
        let running = match edition.state {
            EditionState::Running => None,
            _ => editions::running(&self.pool, edition.tournament).await?,
        };
        let page = GetRankingResponse {
            edition: edition.number,
            official: tournament.has_official_edition() && official == Some(edition.id),
            matches: edition.matches,
            counted: board.counted,
            columns: board.game.ranking_columns().into_iter().map(str::to_owned).collect(),
            bots: u32::try_from(places.len()).unwrap_or(u32::MAX),
            standings: shown
                .map(|ranked| Standing { rank_set: rank_set(ranked), ..place(&board, ranked) })
                .collect(),
            running: running.map(|Edition { number, matches, counted, .. }| EditionProgress {
                edition: number,
                matches,
                counted,
            }),
            freeze_notice: freeze_notice(&tournament, self.now()),
            cancel_notice: cancel_notice(&tournament),
            state: edition.state.as_str().to_owned(),
            rehearsal: tournament.rehearsal.is_some(),
        };
        Ok((page, self.heading_of(&tournament)?))
    }

    /// Whether the results of an edition are official for the caller, or what else they are.
    pub(crate) async fn edition_status(
        &self,
        caller: &Caller,
        tournament: &str,
        number: i32,
    ) -> Result<EditionStatus> {
        let tournament = self.tournament(tournament).await?;
        let visibility = self.visibility(&tournament, caller)?;
        let official = self.official(&self.pool, &tournament, &visibility).await?;
        let default = DefaultEdition::Official;
        let edition = self
            .edition_or_default(&self.pool, &tournament, Some(number), default, official)
            .await?;
        let is_official = tournament.has_official_edition() && official == Some(edition.id);
        let is_rehearsal = tournament.rehearsal.is_some();
        Ok(EditionStatus::of(is_official, edition.state.as_str(), is_rehearsal))
    }

    /// The requested edition and the official one, if the caller may see them. Without a number
    /// this is the default edition, or the newest if there is no official one.
    pub(crate) async fn edition_of(
        &self,
        board: Option<v1::LeaderboardRef>,
        default: DefaultEdition,
        caller: &Caller,
    ) -> Result<(Edition, Option<EditionId>)> {
        let ShownEdition { edition, official, .. } =
            self.shown_edition(board, default, caller).await?;
        Ok((edition, official))
    }

    async fn shown_edition(
        &self,
        board: Option<v1::LeaderboardRef>,
        default: DefaultEdition,
        caller: &Caller,
    ) -> Result<ShownEdition> {
        let v1::LeaderboardRef { tournament, edition } = board.unwrap_or_default();
        // One connection for three statements: taking it costs as much as one of them.
        let mut db = self.pool.acquire().await?;
        let row = tournaments::find(&mut *db, &tournament).await?;
        let tournament = row.ok_or_else(|| ServiceError::missing("tournament", tournament))?;
        let visibility = self.visibility(&tournament, caller)?;
        let official = self.official(&mut *db, &tournament, &visibility).await?;
        let edition =
            self.edition_or_default(&mut *db, &tournament, edition, default, official).await?;
        visibility.require(&edition)?;
        Ok(ShownEdition { tournament, edition, official })
    }

    /// The edition with this number, or the default one.
    pub(super) async fn edition_or_default(
        &self,
        db: impl PgExecutor<'_>,
        tournament: &Tournament,
        number: Option<i32>,
        default: DefaultEdition,
        official: Option<EditionId>,
    ) -> Result<Edition> {
        match (number, official) {
            (Some(number), _) => {
                let row = editions::find(db, tournament.id, number).await?;
                row.ok_or_else(|| {
                    let owner = format!("tournament {}", tournament.name);
                    ServiceError::missing_in(owner, "edition", number)
                })
            }
            (None, Some(official)) if default == DefaultEdition::Official => {
                let row = editions::get(db, official).await?;
                row.ok_or_else(|| ServiceError::internal("the official edition is missing"))
            }
            _ => self.newest(db, tournament).await,
        }
    }
}

/// An edition that a caller may see.
struct ShownEdition {
    tournament: Tournament,
    edition: Edition,
    /// The official edition of the tournament.
    official: Option<EditionId>,
}

/// The places of bots whose names contain a text, ignoring case.
pub(super) fn places_with_text<'a>(
    board: &'a Leaderboard,
    text: &str,
) -> Vec<&'a ranking::RankedContestant> {
    if text.is_empty() {
        return board.places.iter().collect();
    }
    let text = text.to_lowercase();
    let has_text = |entrant: Entrant| {
        let bot = board.roster.get(entrant);
        bot.is_some_and(|bot| bot.name.to_lowercase().contains(&text))
    };
    board.places.iter().filter(|place| has_text(place.contestant.entrant)).collect()
}

/// The number of places of a page with this limit; 0 stands for the default.
pub(super) fn page_limit(limit: u32) -> usize {
    let limit = if limit == 0 { DEFAULT_PLACES } else { limit.min(MAX_PLACES) };
    limit as usize
}

/// A place as a message.
pub(crate) fn place(board: &Leaderboard, ranked: &ranking::RankedContestant) -> Standing {
    let entrant = ranked.contestant.entrant;
    let bot = board.roster.get(entrant);
    let (name, version) = bot.map_or_else(Default::default, |bot| (bot.name.clone(), bot.version));
    let tally = &ranked.contestant.tally;
    let standing = standing(&board.game, board.mean(tally), (name, version), tally);
    Standing {
        rank: rank_message(ranked.rank),
        tied: ranked.tied,
        owner: bot.and_then(|bot| bot.owner_name.clone()).unwrap_or_default(),
        ..standing
    }
}

/// A rank in a message: 0 for an unranked house bot.
pub(super) fn rank_message(rank: Option<usize>) -> u32 {
    rank.map_or(0, |rank| u32::try_from(rank).unwrap_or(u32::MAX))
}

/// The sums of a version of a bot as a message, without its rank.
fn standing(game: &Game, mean: f64, (bot, version): (String, i32), tally: &Tally) -> Standing {
    let part = |index: usize| tally.score.get(index).copied().unwrap_or(0).to_string();
    Standing {
        bot,
        version,
        matches: tally.matches,
        score: (0..game.ranking_columns().len()).map(part).collect(),
        mean,
        forfeits: tally.forfeits.to_vec(),
        bad_answers: tally.bad_answers,
        ..Standing::default()
    }
}
