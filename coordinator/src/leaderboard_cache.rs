//! An in-memory cache of leaderboards.
//!
//! Ranking ten thousand bots is too slow for a page. The standings of an edition change only
//! together with its count of matches, and the ranks by its plan only when its plan is extended or
//! ends. So a leaderboard is current while these numbers are unchanged.
//!
//! During an edition the count changes four times a second. So a background task refreshes the
//! leaderboard of a running edition while it is being requested. Only the first request waits.
//! Later requests get the latest leaderboard at once, even if the database is slow: open snapshots
//! of other transactions can force it to read many row versions. The leaderboard of a complete
//! edition is always final.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::{Game, Games, Seed};
use arbiter_proto::ids::EditionId;
use arbiter_ranking::Entrant;
use arbiter_ranking::{self as ranking, Contestant, RankedContestant, Tally};
use sqlx::{Error, PgConnection, PgPool, Result};
use tokio::task::{AbortHandle, JoinSet};

use crate::background::{aside, compute};
use crate::cache::Cache;
use crate::db::editions::{self, Edition, EditionState};
use crate::db::entrants::Roster;
use crate::db::standings::StoredStandings;
use crate::db::tournaments::{self, Tournament};
use crate::db::{self, plan_ranks, standings};

/// The least pause between two refreshes. The age of a leaderboard is at most the pause plus the
/// time of a refresh.
const MIN_PAUSE: Duration = Duration::from_millis(500);
/// The greatest pause between two refreshes.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How many times longer than a refresh the next pause is, between those two: refreshes of a large
/// leaderboard leave the processors to requests, and it stays live.
const PAUSE_PER_REFRESH: u32 = 10;
/// How long a leaderboard is refreshed after the last request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of cached leaderboards.
const MAX_LEADERBOARDS: usize = 64;
/// Maximum number of complete editions with cached ranks, which are small.
const MAX_RANKS: usize = 512;

/// The rank of each entrant of a complete edition, and whether it is shared. In the order of the
/// entrants.
#[derive(Debug)]
pub struct Ranks(Vec<(Entrant, (Option<usize>, bool))>);

impl Ranks {
    /// The rank of an entrant, if it is ranked, and whether it is shared.
    pub fn of(&self, entrant: Entrant) -> Option<(Option<usize>, bool)> {
        let index = self.0.binary_search_by_key(&entrant, |(entrant, _)| *entrant).ok()?;
        Some(self.0[index].1)
    }
}

/// What all leaderboards of an edition have in common.
#[derive(Clone, Debug)]
pub struct Common {
    /// The game.
    pub game: Game,
    /// The number of episodes, in games with episodes.
    pub episodes: Option<u32>,
    /// The seed of the edition's statistics: public, so that every user can repeat them.
    pub statistics_seed: Seed,
}

impl Common {
    fn of(tournament: &Tournament, games: &Games, edition: i32) -> Result<Self> {
        let game = tournament.game(games).map_err(|error| Error::Decode(Box::new(error)))?;
        let episodes = tournament.episodes();
        let statistics_seed = tournament.public_seed(&format!("statistics/{edition}"))?;
        Ok(Self { game, episodes, statistics_seed })
    }
}

/// How far an edition is. Later states are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Progress {
    planned: i64,
    /// Whether no more matches are planned.
    is_planned: bool,
    counted: i64,
}

impl From<&Edition> for Progress {
    fn from(edition: &Edition) -> Self {
        let Edition { matches: planned, counted, .. } = *edition;
        Self { planned, is_planned: !edition.open_ended, counted }
    }
}

/// A leaderboard at a point in time.
#[derive(Debug)]
pub struct Leaderboard {
    common: Common,
    /// The number of counted matches.
    pub counted: i64,
    progress: Progress,
    /// The ranked entrants, best first.
    pub places: Vec<RankedContestant>,
    /// The entrants.
    pub roster: Arc<Roster>,
    /// The index of each entrant in `places`.
    positions: HashMap<Entrant, usize>,
}

impl Deref for Leaderboard {
    type Target = Common;

    fn deref(&self) -> &Common {
        &self.common
    }
}

impl Leaderboard {
    /// The rank and sums of an entrant.
    pub fn place(&self, entrant: Entrant) -> Option<&RankedContestant> {
        self.positions.get(&entrant).and_then(|position| self.places.get(*position))
    }

    /// What is ranked, in short: equal for leaderboards of an edition with the same plan and the
    /// same results.
    pub fn basis(&self) -> String {
        let Progress { planned, is_planned, counted } = self.progress;
        format!("{counted}/{planned}{}", if is_planned { "" } else { "+" })
    }

    /// The mean of the first component of sums: per match, or per episode in games with episodes.
    pub fn mean(&self, tally: &Tally) -> f64 {
        let Progress { planned, is_planned, counted } = self.progress;
        let is_over = is_planned && counted == planned;
        let count = match self.common.episodes {
            Some(episodes) if is_over => i64::from(episodes),
            // In the first round of an episode each entrant plays one match. The second round
            // begins when all episodes have played the first one.
            Some(episodes) => tally.matches.min(i64::from(episodes)),
            None => tally.matches,
        };
        tally.mean_over(count).unwrap_or(0.0)
    }

    /// Ranks an edition by its current standings.
    async fn read(pool: &PgPool, games: &Games, id: EditionId) -> Result<Self> {
        // A snapshot, so that count and standings are consistent.
        let mut transaction = db::snapshot(pool).await?;
        let edition = editions::get(&mut *transaction, id).await?.ok_or(Error::RowNotFound)?;
        let tournament = tournaments::of_edition(&mut *transaction, id).await?;
        let common = Common::of(&tournament, games, edition.number)?;
        let roster = Arc::new(Roster::of(&mut *transaction, id).await?);
        let contestants = standings::contestants(&mut transaction, id).await?;
        transaction.commit().await?;
        let progress = Progress::from(&edition);
        aside(move || Ok(Self::ranked(progress, common, roster, contestants))).await
    }

    /// The leaderboard of the same edition with its current standings. With low priority if no
    /// request waits for it.
    async fn again(
        self: &Arc<Self>,
        pool: &PgPool,
        id: EditionId,
        is_awaited: bool,
    ) -> Result<Self> {
        let mut transaction = db::snapshot(pool).await?;
        let edition = editions::get(&mut *transaction, id).await?.ok_or(Error::RowNotFound)?;
        let sums = Sums::read(&mut transaction, &edition).await?;
        transaction.commit().await?;
        let earlier = Arc::clone(self);
        let work = move || earlier.with(sums);
        if is_awaited {
            return aside(work).await;
        }
        let computed = compute("leaderboard", work).await;
        computed.map_err(|error| Error::Decode(error.into()))?.0
    }

    /// The leaderboard of the same edition as this snapshot of the database has it.
    pub async fn at(self: &Arc<Self>, db: &mut PgConnection, edition: &Edition) -> Result<Self> {
        let sums = Sums::read(db, edition).await?;
        let earlier = Arc::clone(self);
        aside(move || earlier.with(sums)).await
    }

    /// The leaderboard of the same entrants with other sums.
    fn with(&self, Sums { progress, standings, plan_ranks }: Sums) -> Result<Self> {
        let mut tallies = standings.decode()?;
        // Tied contestants stay in the order of the schedule.
        let places = self.roster.iter().filter_map(|(entrant, _)| self.place(entrant));
        let contestants = places.map(|RankedContestant { contestant, .. }| {
            let Contestant { entrant, submitted_at, is_ranked, .. } = *contestant;
            let tally = tallies.remove(&entrant).unwrap_or_default();
            let plan_rank = plan_ranks.get(&entrant).copied();
            Contestant { entrant, submitted_at, tally, plan_rank, is_ranked }
        });
        let contestants = contestants.collect();
        let roster = Arc::clone(&self.roster);
        Ok(Self::ranked(progress, self.common.clone(), roster, contestants))
    }

    /// The leaderboard of these contestants.
    fn ranked(
        progress: Progress,
        common: Common,
        roster: Arc<Roster>,
        contestants: Vec<Contestant>,
    ) -> Self {
        let places = ranking::rank(&common.game, contestants);
        let number =
            |(position, place): (usize, &RankedContestant)| (place.contestant.entrant, position);
        let positions = places.iter().enumerate().map(number).collect();
        Self { common, counted: progress.counted, progress, places, roster, positions }
    }
}

/// The sums of an edition at one moment.
struct Sums {
    progress: Progress,
    standings: StoredStandings,
    plan_ranks: BTreeMap<Entrant, u32>,
}

impl Sums {
    async fn read(db: &mut PgConnection, edition: &Edition) -> Result<Self> {
        Ok(Self {
            progress: edition.into(),
            standings: StoredStandings::of_edition(&mut *db, edition.id).await?,
            plan_ranks: plan_ranks::of_edition(&mut *db, edition.id).await?,
        })
    }
}

/// The pause after a refresh that took this time.
fn pause_after(refresh: Duration) -> Duration {
    (refresh * PAUSE_PER_REFRESH).clamp(MIN_PAUSE, MAX_PAUSE)
}

/// The cache entry of one edition.
#[derive(Debug)]
struct CacheEntry {
    edition: EditionId,
    games: Games,
    /// Locked while a leaderboard is computed, so that it is computed once for all waiting
    /// requests.
    computing: tokio::sync::Mutex<()>,
    state: Mutex<EntryState>,
}

#[derive(Debug)]
struct EntryState {
    leaderboard: Option<Arc<Leaderboard>>,
    last_request: Instant,
    /// The background task, if one was started.
    refresh_task: Option<AbortHandle>,
}

impl EntryState {
    /// Whether a background task refreshes the leaderboard.
    fn is_refreshing(&self) -> bool {
        self.refresh_task.as_ref().is_some_and(|refresh_task| !refresh_task.is_finished())
    }
}

impl CacheEntry {
    fn new(edition: EditionId, games: Games) -> Self {
        let last_request = Instant::now();
        let state = EntryState { leaderboard: None, last_request, refresh_task: None };
        Self { edition, games, computing: tokio::sync::Mutex::default(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, EntryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A leaderboard that is as new as this edition. Computes it if necessary.
    async fn refresh(
        &self,
        pool: &PgPool,
        edition: &Edition,
        is_awaited: bool,
    ) -> Result<Arc<Leaderboard>> {
        let _computing = self.computing.lock().await;
        let earlier = self.state().leaderboard.clone();
        if let Some(leaderboard) =
            earlier.as_ref().filter(|leaderboard| leaderboard.progress >= edition.into())
        {
            return Ok(Arc::clone(leaderboard));
        }
        let leaderboard = Arc::new(match earlier {
            Some(earlier) => earlier.again(pool, self.edition, is_awaited).await?,
            None => Leaderboard::read(pool, &self.games, self.edition).await?,
        });
        self.state().leaderboard = Some(Arc::clone(&leaderboard));
        Ok(leaderboard)
    }

    /// Refreshes the leaderboard of a running edition while it is being requested.
    async fn refresh_while_requested(&self, pool: &PgPool) -> Result<()> {
        let mut pause = MIN_PAUSE;
        while self.state().last_request.elapsed() < IDLE_TIMEOUT {
            tokio::time::sleep(pause).await;
            let start = Instant::now();
            let edition = editions::get(pool, self.edition).await?.ok_or(Error::RowNotFound)?;
            if edition.state != EditionState::Running {
                break;
            }
            self.refresh(pool, &edition, false).await?;
            pause = pause_after(start.elapsed());
        }
        Ok(())
    }
}

/// The cached leaderboards of a database.
#[derive(Clone, Debug)]
pub struct LeaderboardCache {
    pool: PgPool,
    games: Games,
    entries: Cache<EditionId, CacheEntry>,
    /// The ranks of complete editions.
    ranks: Cache<EditionId, Ranks>,
    /// The background tasks. They end when the last clone of the cache is dropped.
    refresh_tasks: Arc<Mutex<JoinSet<()>>>,
}

impl LeaderboardCache {
    /// An empty cache.
    pub fn new(pool: PgPool, games: Games) -> Self {
        let entries = Cache::new(MAX_LEADERBOARDS);
        let ranks = Cache::new(MAX_RANKS);
        Self { pool, games, entries, ranks, refresh_tasks: Arc::default() }
    }

    /// The leaderboard of an edition.
    pub async fn get(&self, edition: &Edition) -> Result<Arc<Leaderboard>> {
        let entry = self
            .entries
            .get_or_insert_with(edition.id, || CacheEntry::new(edition.id, self.games.clone()));
        let is_running = edition.state == EditionState::Running;
        {
            let mut state = entry.state();
            state.last_request = Instant::now();
            if let Some(leaderboard) = &state.leaderboard
                && (leaderboard.progress == edition.into() || is_running && state.is_refreshing())
            {
                return Ok(Arc::clone(leaderboard));
            }
        }
        let leaderboard = entry.refresh(&self.pool, edition, true).await?;
        if is_running {
            self.start_refreshing(&entry);
        }
        Ok(leaderboard)
    }

    /// The entrants of an edition, from its cached leaderboard if there is one.
    pub async fn roster(&self, edition: EditionId) -> Result<Arc<Roster>> {
        let entry = self.entries.get(&edition, None);
        let cached = entry.and_then(|entry| {
            let state = entry.state();
            state.leaderboard.as_ref().map(|leaderboard| Arc::clone(&leaderboard.roster))
        });
        match cached {
            Some(roster) => Ok(roster),
            None => Roster::of(&self.pool, edition).await.map(Arc::new),
        }
    }

    /// The ranks in these complete editions.
    pub async fn ranks(
        &self,
        game: &Game,
        editions: &[EditionId],
    ) -> Result<HashMap<EditionId, Arc<Ranks>>> {
        let cached = |id: &EditionId| Some((*id, self.ranks.get(id, None)?));
        let mut ranks_by_edition: HashMap<_, _> = editions.iter().filter_map(cached).collect();
        let uncached = editions.iter().copied().filter(|id| !ranks_by_edition.contains_key(id));
        let uncached: Vec<_> = uncached.collect();
        if uncached.is_empty() {
            return Ok(ranks_by_edition);
        }
        let mut db = self.pool.acquire().await?;
        standings::each_edition(&mut db, &uncached, |edition, contestants| {
            let ranked = ranking::rank(game, contestants).into_iter();
            let mut ranks: Vec<_> =
                ranked.map(|row| (row.contestant.entrant, (row.rank, row.tied))).collect();
            ranks.sort_unstable();
            ranks_by_edition.insert(edition, self.ranks.insert(edition, Ranks(ranks)));
        })
        .await?;
        Ok(ranks_by_edition)
    }

    /// Starts the background task of an entry, unless it runs.
    fn start_refreshing(&self, entry: &Arc<CacheEntry>) {
        let mut refresh_tasks = self.refresh_tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = entry.state();
        if state.is_refreshing() {
            return;
        }
        while refresh_tasks.try_join_next().is_some() {}
        let refreshed = Arc::clone(entry);
        let pool = self.pool.clone();
        // After a failure the task ends. The next request then computes the leaderboard and reports
        // the failure.
        let refresh_task = refresh_tasks
            .spawn(async move { drop(refreshed.refresh_while_requested(&pool).await) });
        state.refresh_task = Some(refresh_task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_takes_a_tenth_of_the_time_but_a_leaderboard_stays_live() {
        let pause = |millis| pause_after(Duration::from_millis(millis)).as_millis();
        assert_eq!([1, 50, 120, 200, 5_000].map(pause), [500, 500, 1_200, 2_000, 2_000]);
    }
}
