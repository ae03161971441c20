//! The data of the home page: a card for each tournament, with its progress and its leader.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::edition_status::EditionStatus;
use arbiter_proto::ids::TournamentId;
use arbiter_proto::v1;
use time::OffsetDateTime;

use super::entry_state::EntryState;
use super::refreshed_cache::RefreshedCache;
use super::tournament_heading::TournamentHeading;
use super::{Caller, Result, Service};
use crate::db::editions::{self, Edition};
use crate::db::tournaments::{Tournament, TournamentState};
use crate::db::{bots, tournaments};

/// Maximum age of the data.
pub(super) const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of cards of open tournaments, the newest ones.
const MAX_OPEN: usize = 60;
/// Maximum number of cards of rehearsals that are open, the newest ones.
const MAX_REHEARSALS: usize = 12;
/// Maximum number of cards of tournaments that are over, the newest ones.
const MAX_OVER: usize = 24;

/// The home page of organisers (true) and of others (false).
pub(super) type HomePages = RefreshedCache<bool, HomePage>;

/// The tournaments of the home page.
#[derive(Clone, Debug, Default)]
pub(crate) struct HomePage {
    /// Open tournaments: those with a running edition first, then by the end of entry.
    pub(crate) open: Vec<TournamentCard>,
    /// Open rehearsals, newest first. The page About of a tournament lists all its rehearsals.
    pub(crate) rehearsals: Vec<TournamentCard>,
    /// Tournaments that are over, newest first.
    pub(crate) over: Vec<TournamentCard>,
    /// The number of older tournaments, which have no card. Rehearsals do not count.
    pub(crate) older: usize,
}

/// A tournament on the home page.
#[derive(Clone, Debug)]
pub(crate) struct TournamentCard {
    pub(crate) heading: TournamentHeading,
    /// The title of its game.
    pub(crate) game: String,
    /// The number of bots that have entered and were not withdrawn.
    pub(crate) entered: i64,
    /// The running edition.
    pub(crate) running: Option<v1::Edition>,
    /// Whether an edition has counted a match.
    pub(crate) is_played: bool,
    /// The best ranked bot.
    pub(crate) leader: Option<Leader>,
    /// The names of its bots that are shown with their owners.
    pub(crate) names_with_owners: Arc<HashSet<String>>,
}

/// The best ranked bot of a tournament.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    pub(crate) bot: String,
    /// The number of the edition.
    pub(crate) edition: i32,
    /// What the results of the edition are.
    pub(crate) status: EditionStatus,
    /// When the edition was complete. None if it is not official: while it runs, in a rehearsal,
    /// and in a cancelled tournament.
    pub(crate) since: Option<OffsetDateTime>,
    /// Whether house bots have no rank, so one of them may be better.
    pub(crate) is_among_ranked: bool,
}

impl HomePage {
    /// The newest official results, newest first: cards with a leader of a complete edition.
    pub(crate) fn results(&self, limit: usize) -> Vec<(&TournamentCard, &Leader, OffsetDateTime)> {
        let cards = self.open.iter().chain(&self.over);
        let mut results: Vec<_> = cards
            .filter_map(|card| {
                let leader = card.leader.as_ref()?;
                Some((card, leader, leader.since?))
            })
            .collect();
        results.sort_by_key(|(_, _, since)| Reverse(*since));
        results.truncate(limit);
        results
    }
}

impl Service {
    /// The tournaments of the home page. They may be a second old.
    pub(crate) async fn home_page(&self, caller: &Caller) -> Result<Arc<HomePage>> {
        let key = caller.is_organiser();
        let service = self.clone();
        let caller = caller.clone();
        let read = Box::pin(async move { service.read_home_page(&caller).await });
        self.home_pages.get(key, read).await
    }

    async fn read_home_page(&self, caller: &Caller) -> Result<HomePage> {
        let _permit = self.permit(caller).await?;
        let entered = bots::entered_by_tournament(&self.pool).await?;
        let count = |id: TournamentId| entered.get(&id).copied().unwrap_or_default();
        let mut page = HomePage::default();
        for tournament in tournaments::list(&self.pool).await? {
            let is_open = tournament.state == TournamentState::Open;
            let is_rehearsal = tournament.rehearsal.is_some();
            let (cards, limit) = match (is_rehearsal, is_open) {
                (false, true) => (&mut page.open, MAX_OPEN),
                (false, false) => (&mut page.over, MAX_OVER),
                (true, true) => (&mut page.rehearsals, MAX_REHEARSALS),
                (true, false) => continue,
            };
            if cards.len() == limit {
                page.older += usize::from(!is_rehearsal);
                continue;
            }
            let entered = count(tournament.id);
            match self.tournament_card(&tournament, entered, caller).await {
                Ok(card) => cards.push(card),
                // One tournament that this release cannot read must not hide the others.
                Err(error) => {
                    tracing::warn!(tournament = tournament.name, %error, "no card on the home page");
                }
            }
        }
        // Those whose entry closes soon first, then those without an end, then the others.
        let far = OffsetDateTime::UNIX_EPOCH + time::Duration::days(1_000_000);
        let end_of_entry = |card: &TournamentCard| match card.heading.entry {
            EntryState::Open(closes) => (0, closes.unwrap_or(far)),
            EntryState::Closed(closed) => (1, closed),
            EntryState::Rehearsal | EntryState::Over(_) => (2, far),
        };
        page.open.sort_by_key(|card| (card.running.is_none(), end_of_entry(card)));
        Ok(page)
    }

    async fn tournament_card(
        &self,
        tournament: &Tournament,
        entered: i64,
        caller: &Caller,
    ) -> Result<TournamentCard> {
        let visibility = self.visibility(tournament, caller)?;
        let running = editions::running(&self.pool, tournament.id).await?;
        let official = match self.official(&self.pool, tournament, &visibility).await? {
            Some(id) => editions::get(&self.pool, id).await?,
            None => None,
        };
        let newest = match tournament.rehearsal {
            Some(_) => editions::newest(&self.pool, tournament.id).await?,
            None => running.clone(),
        };
        let visible = newest.as_ref().filter(|edition| visibility.shows(edition));
        let leader = match official.as_ref().or(visible) {
            Some(edition) => {
                let is_rehearsal = tournament.rehearsal.is_some();
                let state = edition.state.as_str();
                let is_official = official.is_some() && tournament.has_official_edition();
                let status = EditionStatus::of(is_official, state, is_rehearsal);
                self.leader(edition, status).await?
            }
            None => None,
        };
        let is_played = leader.is_some() || {
            let all = editions::of_tournament(&self.pool, tournament.id).await?;
            all.iter().any(|edition| edition.counted > 0)
        };
        let running = match running {
            Some(edition) => Some(self.edition_message(edition, None).await?),
            None => None,
        };
        Ok(TournamentCard {
            heading: self.heading_of(tournament)?,
            game: self.title_in_settings(&tournament.game, &tournament.settings),
            entered,
            running,
            is_played,
            leader,
            names_with_owners: self.names_with_owners(&tournament.name).await?,
        })
    }

    /// The first ranked bot of the leaderboard, once a match is counted.
    async fn leader(&self, edition: &Edition, status: EditionStatus) -> Result<Option<Leader>> {
        let board = self.boards.get(edition).await?;
        let first = board.places.iter().find(|place| place.rank.is_some());
        let first = first.filter(|_| board.counted > 0);
        let bot = first.and_then(|place| board.roster.get(place.contestant.entrant));
        Ok(bot.map(|bot| Leader {
            bot: bot.name.clone(),
            edition: edition.number,
            status,
            since: edition.ended_at.filter(|_| status == EditionStatus::Official),
            is_among_ranked: board.places.iter().any(|place| place.rank.is_none()),
        }))
    }
}
