//! Statistics of editions, computed in the background.
//!
//! A large edition takes seconds, so no request computes statistics. A request gets the newest that
//! are complete, and starts a computation if results were counted since. Only one edition is
//! computed at a time. A running edition is computed again after a pause that grows with the
//! duration, so that statistics take a small share of one processor.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::Seed;
use arbiter_proto::ids::EditionId;
use arbiter_ranking::statistics::{Blocks, Measured, Statistics};
use arbiter_ranking::{Entrant, PairResults, Rating, ratings};
use sqlx::PgPool;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::{Result, ServiceError};
use crate::cache::Cache;
use crate::db::editions::Edition;
use crate::db::results;
use crate::leaderboard_cache::Leaderboard;
use crate::tournament::episode_rounds::episode_of;

/// Maximum number of matches of an edition with statistics: they are in memory together.
pub(super) const MAX_MATCHES: i64 = 2_000_000;
/// Maximum number of results of pairs: a match of several has one for each two seats.
const MAX_PAIR_RESULTS: usize = 12_000_000;
/// Maximum total number of blocks of the editions whose statistics are kept.
const MAX_KEPT_BLOCKS: usize = 4_000_000;
/// Maximum number of editions whose last computation is remembered.
const MAX_EDITIONS: usize = 4096;
/// Maximum number of computations that wait for their turn.
const MAX_WAITING: usize = 16;
/// The least pause between two computations of a running edition.
const MIN_PAUSE: Duration = Duration::from_secs(5);
/// The pause is this many times as long as the computation.
const PAUSE_FACTOR: u32 = 20;

/// The statistics of an edition.
#[derive(Debug)]
pub(crate) struct EditionStatistics {
    pub(crate) statistics: Statistics,
    /// The ratings, in the order of `statistics.entrants`.
    pub(crate) ratings: Vec<Option<Rating>>,
}

impl EditionStatistics {
    /// What it weighs in the cache: about the number of its blocks.
    fn weight(&self) -> usize {
        let blocks = usize::try_from(self.statistics.blocks).unwrap_or(usize::MAX);
        blocks.saturating_add(self.statistics.entrants.len()).max(1)
    }
}

/// The last computation of an edition.
#[derive(Debug, Default)]
struct State {
    /// The count of results that the newest statistics were computed from.
    counted: i64,
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

    /// Ends a computation. After a failure, the next request after the pause tries again.
    fn end(&self, counted: i64, failure: Option<String>, started: Instant) {
        self.with_state(|state| {
            state.is_computing = false;
            let pause = (started.elapsed() * PAUSE_FACTOR).max(MIN_PAUSE);
            state.pause_until = Some(Instant::now() + pause);
            if failure.is_none() {
                state.counted = counted;
            }
            state.failure = failure;
        });
        self.ended.send_modify(|ended| *ended += 1);
    }
}

/// The statistics of the editions of a database.
#[derive(Debug)]
pub(crate) struct StatisticsCache {
    pool: PgPool,
    entries: Cache<EditionId, CacheEntry>,
    newest: Cache<EditionId, EditionStatistics>,
    /// One computation at a time.
    turn: Arc<Semaphore>,
    /// The computations. They end when the cache is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl StatisticsCache {
    pub(super) fn new(pool: PgPool) -> Self {
        let entries = Cache::new(MAX_EDITIONS);
        let newest = Cache::weighted(MAX_KEPT_BLOCKS, EditionStatistics::weight);
        Self { pool, entries, newest, turn: Arc::new(Semaphore::new(1)), tasks: Mutex::default() }
    }

    /// The newest statistics of an edition. Starts a computation if they are out of date.
    pub(crate) fn newest(
        &self,
        edition: &Edition,
        board: &Leaderboard,
    ) -> Option<Arc<EditionStatistics>> {
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
        board: &Leaderboard,
        patience: Duration,
    ) -> Result<Arc<EditionStatistics>> {
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
    fn entry(&self, edition: &Edition, board: &Leaderboard) -> Arc<CacheEntry> {
        let entry = self.entries.get_or_insert_with(edition.id, CacheEntry::new);
        let is_kept = self.newest.get(&edition.id, None).is_some();
        let begins = entry.with_state(|state| {
            let is_current = is_kept && state.counted == edition.counted;
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

    fn compute(&self, entry: &Arc<CacheEntry>, edition: &Edition, board: &Leaderboard) {
        let seed = board.statistics_seed;
        let mut entrants: Vec<_> = board.roster.iter().map(|(entrant, _)| entrant).collect();
        entrants.sort_unstable();
        let is_episode = board.game.episodes.is_some();
        let pool = self.pool.clone();
        let turn = Arc::clone(&self.turn);
        let id = edition.id;
        let counted = edition.counted;
        let edition = edition.clone();
        let entry = Arc::clone(entry);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        if tasks.len() >= MAX_WAITING {
            return entry.with_state(|state| state.is_computing = false);
        }
        let newest = self.newest.clone();
        tasks.spawn(async move {
            let _turn = turn.acquire_owned().await;
            let started = Instant::now();
            // A task, so that a panic is a failure like any other.
            let work = async move { compute(&pool, &edition, entrants, is_episode, seed).await };
            let failure = match tokio::spawn(work).await {
                Ok(Ok(statistics)) => {
                    newest.insert(id, statistics);
                    None
                }
                Ok(Err(failure)) => Some(failure),
                Err(panic) => Some(panic.to_string()),
            };
            if let Some(failure) = &failure {
                tracing::warn!(edition = %id, failure, "statistics could not be computed");
            }
            entry.end(counted, failure, started);
        });
    }
}

/// Reads the results of an edition and computes its statistics on another thread.
async fn compute(
    pool: &PgPool,
    edition: &Edition,
    entrants: Vec<Entrant>,
    is_episode: bool,
    seed: Seed,
) -> Result<EditionStatistics, String> {
    let mut blocks = Blocks::new(is_episode);
    let mut pairs = PairResults::default();
    let reading = results::each_with_seed_key(pool, edition.scope(), |result| {
        let key = result.seed_key;
        let block = if is_episode { episode_of(key) } else { key };
        let [first, .., _] = result.transcript.as_chunks().0 else {
            unreachable!("a hash has 32 bytes")
        };
        let played = result.played.outcome();
        let board = result.board;
        blocks.add(&Measured { block, board, transcript: u64::from_be_bytes(*first), played });
        pairs.add(block, &played);
        if pairs.len() > MAX_PAIR_RESULTS { Err(()) } else { Ok(()) }
    });
    let error = |error: sqlx::Error| error.to_string();
    reading.await.map_err(error)?.map_err(|()| {
        format!("it has more than {MAX_PAIR_RESULTS} results of pairs; export it and count there")
    })?;
    let computing = tokio::task::spawn_blocking(move || {
        let ratings = ratings(&entrants, pairs);
        EditionStatistics { statistics: Statistics::of(&entrants, blocks, seed), ratings }
    });
    computing.await.map_err(|error| error.to_string())
}
