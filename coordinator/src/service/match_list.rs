//! Lists of the played matches of editions, with filters.
//!
//! A list is read page by page after the number of its last match, so each page costs the same.
//! The matches of a bot are found in one of two ways. If the bot has many of the matches, pages of
//! all matches are read and the others left out. If it has few, an index finds them. Which way is
//! better is seen from the page before, and may change within a list.

use std::sync::Arc;

use arbiter_games::Seed;
use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1::{self, ListMatchesRequest, MatchStatus};
use arbiter_ranking::Entrant;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::leaderboard_freeze::Visibility;
use super::matches::{add_seed, played_match, published_seed};
use super::rounds::MatchRounds;
use super::{
    Caller, DefaultEdition, ErrorKind, ResponseStream, Result, Service, ServiceError, match_name,
};
use crate::db::editions::{self, AddingEditions, Edition, EditionScope, EditionState};
use crate::db::entrants::Roster;
use crate::db::played_matches::{self, Cursor, PlayedMatch};
use crate::db::tournaments::Tournament;
use crate::tournament::stored_plan::{self, Positions};

/// If less than one match in this many passes the filter, the matches are found by index.
const SPARSE: usize = 10;

/// Selects matches by their bots and forfeits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MatchFilter {
    /// Only matches of this entrant.
    bot: Option<Entrant>,
    /// Only matches of this entrant.
    opponent: Option<Entrant>,
    /// Only matches that `bot` forfeited; without one, that any seat forfeited.
    forfeits_only: bool,
}

impl MatchFilter {
    fn new(
        request: &ListMatchesRequest,
        bot: Option<Entrant>,
        opponent: Option<Entrant>,
    ) -> Result<Self> {
        if bot.is_none() && opponent.is_some() {
            let error = "`opponent` needs `bot`: name the two bots that met";
            return Err(ServiceError::invalid_argument(error));
        }
        Ok(Self { bot, opponent, forfeits_only: request.forfeits_only })
    }

    /// The entrants that must have seats.
    fn entrants(&self) -> Vec<Entrant> {
        self.bot.into_iter().chain(self.opponent).collect()
    }

    fn passes(&self, played: &PlayedMatch) -> bool {
        let seats = &played.seats.0;
        let is_forfeited = || match self.bot {
            None => played.result.forfeits.iter().any(Option::is_some),
            Some(bot) => {
                let seat = seats.iter().position(|entrant| *entrant == bot);
                seat.is_some_and(|seat| played.result.forfeit(seat).is_some())
            }
        };
        self.entrants().iter().all(|entrant| seats.contains(entrant))
            && (!self.forfeits_only || is_forfeited())
    }
}

impl Service {
    /// The edition whose matches a request selects.
    pub(crate) async fn listed_edition(
        &self,
        caller: &Caller,
        request: &ListMatchesRequest,
    ) -> Result<Edition> {
        let ListMatchesRequest { tournament, edition, bot, version, .. } = request;
        let mut number = *edition;
        if *version != 0 && bot.is_empty() {
            let error = "`version` needs `bot`: name the bot with this version";
            return Err(ServiceError::invalid_argument(error));
        }
        let missing = || {
            let error = format!("version {version} of {bot} takes part in no edition shown to you");
            ServiceError::new(ErrorKind::NotFound, error)
        };
        if *version != 0 && number.is_none() {
            let row = self.tournament(tournament).await?;
            let ended_by = self.visibility(&row, caller)?.frozen;
            let bot = self.bot(caller, row.id, bot).await?.name;
            let found =
                editions::with_version(&self.pool, row.id, &bot, *version, ended_by).await?;
            number = Some(found.ok_or_else(missing)?);
        }
        let board = v1::LeaderboardRef { tournament: tournament.clone(), edition: number };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Official, caller).await?;
        Ok(edition)
    }

    /// Streams the played matches of an edition that a request selects.
    pub(crate) async fn list_matches(
        &self,
        caller: &Caller,
        request: ListMatchesRequest,
    ) -> Result<ResponseStream<MatchStatus>> {
        let edition = self.listed_edition(caller, &request).await?;
        let row = self.tournament(&request.tournament).await?;
        let visibility = self.visibility(&row, caller)?;
        let roster = self.boards.roster(edition.id).await?;
        let entrant = async |name: &str| match name {
            "" => Ok(None),
            name => self.entrant(caller, row.id, &roster, name).await.map(Some),
        };
        let bot = entrant(&request.bot).await?;
        let opponent = entrant(&request.opponent).await?;
        let filter = MatchFilter::new(&request, bot, opponent)?;
        if let Some(bot) = filter.bot
            && let Some(info) = roster.get(bot)
            && request.version != 0
            && info.version != request.version
        {
            let error = format!(
                "in edition {} {} takes part with version {}, not {}",
                edition.number, info.name, info.version, request.version
            );
            return Err(ServiceError::new(ErrorKind::NotFound, error));
        }
        let positions = if request.positions {
            let _permit = self.permit(caller).await?;
            let games = self.queue.games();
            Some(stored_plan::positions(&self.pool, games, &row, &edition).await?)
        } else {
            None
        };
        let rounds = if request.rounds {
            self.match_rounds(caller, &request.tournament, &edition).await?
        } else {
            Arc::default()
        };
        let limit = if request.limit == 0 { usize::MAX } else { request.limit as usize };
        let mut cursor = Cursor::start(request.newest_first);
        if let Some(after) = request.after {
            cursor = cursor.moved_to(MatchNumber(after));
        }
        let (sender, responses) = mpsc::channel(64);
        let listing = MatchListing {
            service: self.clone(),
            caller: caller.clone(),
            edition: edition.scope(),
            adding_editions: AddingEditions::of(&self.pool, edition.scope()).await?,
            roster,
            filter,
            seed: published_seed(&row, edition.number),
            tournament: row,
            positions,
            rounds,
            // All results of a complete edition are visible if the edition is.
            visibility: Some(visibility).filter(|visibility| {
                visibility.frozen.is_some() && edition.state != EditionState::Complete
            }),
        };
        tokio::spawn(async move {
            if let Err(error) = listing.send(cursor, limit, &sender).await {
                // This fails if the client has closed the stream.
                drop(sender.send(Err(error)).await);
            }
        });
        Ok(Box::pin(ReceiverStream::new(responses)))
    }
}

/// A stream of matches to a client.
struct MatchListing {
    service: Service,
    caller: Caller,
    edition: EditionScope,
    adding_editions: AddingEditions,
    roster: Arc<Roster>,
    filter: MatchFilter,
    tournament: Tournament,
    /// The seed of the edition, once it is published. All its matches have this seed.
    seed: Option<Seed>,
    /// The position of each match in the schedule, if they are requested.
    positions: Option<Positions>,
    /// The stage and the round of matches, if they are requested.
    rounds: Arc<MatchRounds>,
    /// Only visible results are sent, if this is given.
    visibility: Option<Visibility>,
}

impl MatchListing {
    /// Sends at most `limit` matches, page by page.
    async fn send(
        &self,
        mut cursor: Cursor,
        limit: usize,
        to: &mpsc::Sender<Result<MatchStatus>>,
    ) -> Result<()> {
        let mut sent_matches = 0;
        let mut by_index = false;
        loop {
            let page = self.page(cursor, by_index, limit - sent_matches).await?;
            let Some(last) = page.last().map(|last| last.result.number) else { return Ok(()) };
            cursor = cursor.moved_to(last);
            let read = if by_index { number_range(&page) } else { page.len() };
            let selected: Vec<_> =
                page.into_iter().filter(|played| self.filter.passes(played)).collect();
            by_index = self.filter.bot.is_some() && selected.len() < read / SPARSE;
            for played in self.visible(selected).await? {
                if to.send(Ok(self.message(&played))).await.is_err() {
                    return Ok(());
                }
                sent_matches += 1;
                if sent_matches == limit {
                    return Ok(());
                }
            }
        }
    }

    /// The matches from a place in the list on: by index only those that pass the filter.
    /// If all matches pass, at most `limit` are read.
    async fn page(&self, cursor: Cursor, by_index: bool, limit: usize) -> Result<Vec<PlayedMatch>> {
        // The permit is held only during the query, so a slow client does not block it.
        let _permit = self.service.permit(&self.caller).await?;
        let pool = &self.service.pool;
        let forfeits_only = self.filter.forfeits_only;
        Ok(if by_index {
            let entrants = self.filter.entrants();
            let forfeited_by = self.filter.bot.filter(|_| forfeits_only);
            played_matches::page_of_entrants(pool, self.edition, cursor, &entrants, forfeited_by)
                .await?
        } else {
            let all_pass = self.filter.bot.is_none() && self.visibility.is_none();
            let wanted = if all_pass { limit } else { usize::MAX };
            let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).min(played_matches::PAGE);
            played_matches::page(pool, self.edition, cursor, forfeits_only, wanted).await?
        })
    }

    /// The matches of a page whose results are visible.
    async fn visible(&self, mut page: Vec<PlayedMatch>) -> Result<Vec<PlayedMatch>> {
        let Some(visibility) = &self.visibility else { return Ok(page) };
        let numbers: Vec<_> = page.iter().map(|played| played.result.number).collect();
        let tournament = self.tournament.id;
        let visible = self.service.visible_results(visibility, tournament, &numbers).await?;
        page.retain(|played| visible.contains(&played.result.number));
        Ok(page)
    }

    fn message(&self, played: &PlayedMatch) -> MatchStatus {
        let number = played.result.number;
        let name = match_name(&self.tournament, number);
        let mut status = played_match(&name, |entrant| self.roster.get(entrant), played);
        status.tournament.clone_from(&self.tournament.name);
        status.position = self.positions.as_ref().and_then(|positions| positions.of(number));
        status.edition = self.adding_editions.of_match(number).unwrap_or_default();
        status.counted = played.is_counted;
        if let Some((stage, round)) = self.rounds.of(number) {
            status.stage = Some(stage);
            status.round = round;
        }
        add_seed(self.seed, played.seed_key, &mut status);
        status
    }
}

/// How many numbers lie between the first and the last match of a page, both included.
fn number_range(page: &[PlayedMatch]) -> usize {
    let number = |played: Option<&PlayedMatch>| played.map_or(0, |played| played.result.number.0);
    let range = number(page.first()).abs_diff(number(page.last())) + 1;
    usize::try_from(range).unwrap_or(usize::MAX)
}
