//! Statistics of editions, computed in the background.
//!
//! A large edition takes seconds, so no request computes statistics. A request gets the newest that
//! are complete, and starts a computation if results were counted since. Only one edition is
//! computed at a time, on a thread of low priority. A running edition is computed again after a
//! pause that grows with the time that this takes, so that statistics take a small share of one
//! processor. The results of running editions stay in memory, so that only new ones are read
//! (`counted_results`).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::Seed;
use arbiter_proto::ids::EditionId;
use arbiter_ranking::Entrant;
use sqlx::PgPool;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::counted_results::{CountedResults, EditionStatistics};
use super::{Result, ServiceError};
use crate::background;
use crate::cache::Cache;
use crate::db::editions::Edition;
use crate::db::{self, editions};
use crate::leaderboard_cache::Leaderboard;

/// Maximum number of matches of an edition with statistics: they are in memory together.
pub(super) const MAX_MATCHES: i64 = 2_000_000;
/// Maximum total number of blocks of the editions whose statistics are kept.
const MAX_KEPT_BLOCKS: usize = 4_000_000;
/// The memory of a place of a leaderboard, in blocks.
const PLACE_BLOCKS: usize = 20;
/// Maximum memory of the results that are kept for the next computation, in bytes: those of about a
/// million matches of two.
const MAX_RESULTS_BYTES: usize = 128 << 20;
/// Maximum number of editions whose last computation is remembered.
const MAX_EDITIONS: usize = 4096;
/// Maximum number of computations that wait for their turn.
const MAX_WAITING: usize = 16;
/// The least pause between two computations of a running edition.
const MIN_PAUSE: Duration = Duration::from_secs(5);
/// The pause is this many times as long as the computation: the time of its reads and its time on a
/// processor. After a failure, all its time.
const PAUSE_FACTOR: u32 = 20;

/// Statistics with the leaderboard of the same time, so that all pages that show them have the same
/// ranks.
#[derive(Debug)]
pub(crate) struct RankedStatistics {
    pub(super) all: EditionStatistics,
    pub(super) board: Leaderboard,
}

impl RankedStatistics {
    /// What it weighs in the cache: about the number of its blocks, and for each place of the
    /// leaderboard as much as that many blocks.
    fn weight(&self) -> usize {
        let statistics = &self.all.statistics;
        let blocks = usize::try_from(statistics.blocks).unwrap_or(usize::MAX);
        let places = PLACE_BLOCKS * self.board.places.len();
        blocks.saturating_add(statistics.entrants.len()).saturating_add(places).max(1)
    }
}

/// The last computation of an edition.
#[derive(Debug, Default)]
struct State {
    /// The count of results that the newest statistics were computed from.
    counted: i64,
    /// The basis of their leaderboard.
    board: String,
    is_computing: bool,
    /// Why the last computation failed.
    failure: Option<String>,
    /// No computation begins before.
    pause_until: Option<Instant>,
}

#[derive(Debug)]
struct CacheEntry {
    state: Mutex<State>,
    /// The number of computations that ended, well or not.
    ended: watch::Sender<u64>,
}

impl CacheEntry {
    fn new() -> Self {
        Self { state: Mutex::default(), ended: watch::Sender::new(0) }
    }

    fn with_state<T>(&self, use_state: impl FnOnce(&mut State) -> T) -> T {
        use_state(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends a computation from this count of results with this leaderboard, which took this `time`.
    /// After a failure, the next request after the pause tries again.
    fn end(&self, outcome: Result<i64, String>, board: String, time: Duration) {
        self.with_state(|state| {
            state.is_computing = false;
            let pause = (time * PAUSE_FACTOR).max(MIN_PAUSE);
            state.pause_until = Some(Instant::now() + pause);
            match outcome {
                Ok(counted) => {
                    state.counted = counted;
                    state.board = board;
                    state.failure = None;
                }
                Err(failure) => state.failure = Some(failure),
            }
        });
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// Results for the next computation, which takes them.
#[derive(Debug)]
struct KeptResults(Mutex<Option<CountedResults>>);

impl KeptResults {
    fn take(&self) -> Option<CountedResults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn bytes(&self) -> usize {
        let results = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        results.as_ref().map_or(0, CountedResults::bytes)
    }
}

/// The statistics of the editions of a database.
#[derive(Debug)]
pub(crate) struct StatisticsCache {
    pool: PgPool,
    entries: Cache<EditionId, CacheEntry>,
    newest: Cache<EditionId, RankedStatistics>,
    /// The results of running editions.
    results: Cache<EditionId, KeptResults>,
    /// One computation at a time.
    turn: Arc<Semaphore>,
    /// The computations. When the cache is dropped, the waiting ones end; one that has begun goes
    /// on to its end.
    tasks: Mutex<JoinSet<()>>,
}

impl StatisticsCache {
    pub(super) fn new(pool: PgPool) -> Self {
        let entries = Cache::new(MAX_EDITIONS);
        let newest = Cache::weighted(MAX_KEPT_BLOCKS, RankedStatistics::weight);
        let results = Cache::weighted(MAX_RESULTS_BYTES, KeptResults::bytes);
        let turn = Arc::new(Semaphore::new(1));
        Self { pool, entries, newest, results, turn, tasks: Mutex::default() }
    }

    /// The newest statistics of an edition. Starts a computation if they are out of date.
    pub(crate) fn newest(
        &self,
        edition: &Edition,
        board: &Arc<Leaderboard>,
    ) -> Option<Arc<RankedStatistics>> {
        self.entry(edition, board);
        self.newest.get(&edition.id, None)
    }

    /// Like [`Self::newest`], but waits for the first ones.
    ///
    /// # Errors
    /// If they take longer than `patience`, or cannot be computed.
    pub(crate) async fn wait(
        &self,
        edition: &Edition,
        board: &Arc<Leaderboard>,
        patience: Duration,
    ) -> Result<Arc<RankedStatistics>> {
        let entry = self.entry(edition, board);
        let mut ended = entry.ended.subscribe();
        let newest = self.newest.get(&edition.id, None);
        if newest.is_none() && entry.with_state(|state| state.is_computing) {
            // Its sender is in the entry.
            drop(tokio::time::timeout(patience, ended.changed()).await);
        }
        if let Some(newest) = newest.or_else(|| self.newest.get(&edition.id, None)) {
            return Ok(newest);
        }
        let number = edition.number;
        Err(match entry.with_state(|state| state.failure.clone()) {
            Some(failure) => ServiceError::failed_precondition(format!(
                "the statistics of edition {number} could not be computed: {failure}"
            )),
            None => ServiceError::unavailable(format!(
                "the statistics of edition {number} are being computed; ask again in a few seconds"
            ))
            .with_retry_after(MIN_PAUSE),
        })
    }

    /// The entry of an edition, whose computation runs if it is out of date.
    fn entry(&self, edition: &Edition, board: &Arc<Leaderboard>) -> Arc<CacheEntry> {
        let entry = self.entries.get_or_insert_with(edition.id, CacheEntry::new);
        let is_kept = self.newest.get(&edition.id, None).is_some();
        let begins = entry.with_state(|state| {
            let is_current =
                is_kept && state.counted == edition.counted && state.board == board.basis();
            let waits = state.pause_until.is_some_and(|until| Instant::now() < until);
            let begins = !(is_current || state.is_computing || waits);
            state.is_computing |= begins;
            begins
        });
        if begins {
            self.compute(&entry, edition, board);
        }
        entry
    }

    fn compute(&self, entry: &Arc<CacheEntry>, edition: &Edition, board: &Arc<Leaderboard>) {
        let seed = board.statistics_seed;
        let unranked = board.places.iter().filter(|place| place.rank.is_none());
        let unranked: HashSet<_> = unranked.map(|place| place.contestant.entrant).collect();
        let mut entrants: Vec<_> = board.roster.iter().map(|(entrant, _)| entrant).collect();
        entrants.sort_unstable();
        let is_episode = board.game.episodes.is_some();
        let pool = self.pool.clone();
        let kept = self.results.clone();
        let turn = Arc::clone(&self.turn);
        let id = edition.id;
        let entry = Arc::clone(entry);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        if tasks.len() >= MAX_WAITING {
            return entry.with_state(|state| state.is_computing = false);
        }
        let newest = self.newest.clone();
        let board = Arc::clone(board);
        tasks.spawn(async move {
            let mut basis = board.basis();
            let turn = turn.acquire_owned().await;
            let started = Instant::now();
            // A task, so that a panic is a failure like any other.
            let work = tokio::spawn(async move {
                let _turn = turn;
                let results = kept.get(&id, None).and_then(|results| results.take());
                let results = results.unwrap_or_else(|| CountedResults::new(id, is_episode));
                let (results, board) = read(&pool, results, &board).await?;
                let reading = started.elapsed();
                // Not the time for which the thread waits on a busy machine.
                let (all, results, computing) = compute(results, entrants, unranked, seed).await?;
                let counted = results.counted();
                // A larger set would only push out those of all other editions.
                if results.can_grow() && results.bytes() <= MAX_RESULTS_BYTES {
                    kept.insert(id, KeptResults(Mutex::new(Some(results))));
                } else {
                    kept.remove(&id);
                }
                Ok::<_, String>((RankedStatistics { all, board }, counted, reading + computing))
            });
            let mut time = None;
            let outcome = match work.await {
                Ok(Ok((statistics, counted, taken))) => {
                    time = Some(taken);
                    basis = statistics.board.basis();
                    newest.insert(id, statistics);
                    Ok(counted)
                }
                Ok(Err(failure)) => Err(failure),
                Err(panic) => Err(panic.to_string()),
            };
            if let Err(failure) = &outcome {
                tracing::warn!(edition = %id, failure, "statistics could not be computed");
            }
            entry.end(outcome, basis, time.unwrap_or_else(|| started.elapsed()));
        });
    }
}

/// Reads the new results of an edition and its leaderboard in one snapshot.
async fn read(
    pool: &PgPool,
    results: CountedResults,
    board: &Arc<Leaderboard>,
) -> Result<(CountedResults, Leaderboard), String> {
    let text = |error: sqlx::Error| error.to_string();
    let mut snapshot = db::snapshot(pool).await.map_err(text)?;
    let edition = editions::get(&mut *snapshot, results.edition()).await.map_err(text)?;
    let edition = edition.ok_or("the edition was deleted")?;
    let board = board.at(&mut snapshot, &edition).await.map_err(text)?;
    let results = results.updated(&mut snapshot, &edition).await;
    snapshot.commit().await.map_err(text)?;
    Ok((results.map_err(|error| error.to_string())?, board))
}

/// Computes the statistics of an edition. Also returns the time that this took.
async fn compute(
    mut results: CountedResults,
    entrants: Vec<Entrant>,
    unranked: HashSet<Entrant>,
    seed: Seed,
) -> Result<(EditionStatistics, CountedResults, Duration), String> {
    let newly_read = results.newly_read();
    tracing::debug!(edition = %results.edition(), newly_read, "computing statistics");
    let work = move || {
        let is_ranked = |entrant| !unranked.contains(&entrant);
        (results.statistics(&entrants, is_ranked, seed), results)
    };
    let ((statistics, results), time) = background::compute("statistics", work).await?;
    Ok((statistics, results, time))
}
