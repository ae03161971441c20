//! Leaderboards, kept in memory as they are asked for.
//!
//! Ranking ten thousand bots takes longer than a page may. The standings of an edition change only
//! together with its count of matches, so a board is good as long as that count stands, which is
//! one row to look up.
//!
//! While matches go on the count moves four times a second. So the board of a running edition that
//! somebody looks at has a keeper, who makes it anew beside those who look until nobody has looked
//! for a while: they are shown what there is, and only the first of them waits. However slow the
//! database is at it (others may hold snapshots open that make it read every row as it once was), a
//! look is not. A complete edition is never shown otherwise than complete.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arbiter_games::{Game, Games};
use arbiter_proto::ids::EditionId;
use arbiter_ranking::Entrant;
use arbiter_ranking::{self as ranking, Contestant, RankedContestant};
use sqlx::{Error, PgPool, Result};
use tokio::task::{AbortHandle, JoinSet};

use crate::cache::Cache;
use crate::db::editions::{self, Edition, EditionState};
use crate::db::entrants::Roster;
use crate::db::{self, standings};

/// How long a keeper rests before it looks whether a board is still good: so old, and as old as it
/// takes to make one, is the oldest that is shown.
const REST: Duration = Duration::from_millis(500);
/// How long a board is kept good after somebody looked at it.
const INTEREST: Duration = Duration::from_secs(60);
/// Leaderboards that are kept.
const KEPT: usize = 64;
/// Complete editions whose ranks are kept, which is little of each.
const KEPT_RANKS: usize = 512;

/// The rank of each entrant of a complete edition, entrant 0 first, and whether somebody shares it.
pub type Ranks = Vec<(usize, bool)>;

/// A leaderboard as it was at a moment.
#[derive(Debug)]
pub struct Leaderboard {
    /// The game.
    pub game: Game,
    /// How many matches are in it.
    pub counted: i64,
    /// The places, the best first.
    pub places: Vec<RankedContestant>,
    /// Who takes part.
    pub roster: Arc<Roster>,
    /// Where each entrant stands in `places`.
    positions: HashMap<Entrant, usize>,
}

impl Leaderboard {
    /// The place of an entrant.
    pub fn place(&self, entrant: Entrant) -> Option<&RankedContestant> {
        self.positions.get(&entrant).and_then(|position| self.places.get(*position))
    }

    /// Ranks an edition as its standings are now. Who takes part is taken from an earlier board of
    /// it, where there is one.
    async fn read(
        pool: &PgPool,
        games: &Games,
        id: EditionId,
        earlier: Option<&Self>,
    ) -> Result<Self> {
        // Count and standings fit together.
        let mut transaction = db::snapshot(pool).await?;
        let counted = editions::counted(&mut *transaction, id).await?;
        let (game, roster, contestants) = if let Some(earlier) = earlier {
            let mut tallies = standings::of_edition(&mut *transaction, id).await?;
            let now = earlier.places.iter().map(|RankedContestant { contestant, .. }| {
                let Contestant { entrant, submitted_at, .. } = *contestant;
                let tally = tallies.remove(&entrant).unwrap_or_default();
                Contestant { entrant, submitted_at, tally }
            });
            (earlier.game.clone(), Arc::clone(&earlier.roster), now.collect())
        } else {
            let game = editions::game(&mut *transaction, games, id).await?;
            let roster = Roster::of(&mut *transaction, id).await?;
            let contestants = standings::contestants(&mut transaction, id).await?;
            (game, Arc::new(roster), contestants)
        };
        transaction.commit().await?;
        let places = ranking::rank(&game, contestants);
        let number =
            |(position, place): (usize, &RankedContestant)| (place.contestant.entrant, position);
        let positions = places.iter().enumerate().map(number).collect();
        Ok(Self { game, counted, places, roster, positions })
    }
}

/// What is kept of one edition.
#[derive(Debug)]
struct Slot {
    edition: EditionId,
    games: Games,
    board: Mutex<Option<Arc<Leaderboard>>>,
    /// Held while a board is made, so that it is made once for all who wait for it.
    making: tokio::sync::Mutex<()>,
    /// When somebody last looked.
    looked: Mutex<Instant>,
    /// The keeper, if there is one or was.
    keeper: Mutex<Option<AbortHandle>>,
}

impl Slot {
    fn new(edition: EditionId, games: Games) -> Self {
        Self {
            edition,
            games,
            board: Mutex::default(),
            making: tokio::sync::Mutex::default(),
            looked: Mutex::new(Instant::now()),
            keeper: Mutex::default(),
        }
    }

    fn board(&self) -> Option<Arc<Leaderboard>> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes note that somebody looks.
    fn look(&self) {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether somebody looked not long ago.
    fn is_of_interest(&self) -> bool {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < INTEREST
    }

    /// Whether the board has a keeper.
    fn is_kept(&self) -> bool {
        let keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        keeper.as_ref().is_some_and(|keeper| !keeper.is_finished())
    }

    /// A board with at least so many matches; made, unless there is one.
    async fn make(&self, pool: &PgPool, counted: i64) -> Result<Arc<Leaderboard>> {
        let _making = self.making.lock().await;
        let earlier = self.board();
        if let Some(board) = earlier.as_ref().filter(|board| board.counted >= counted) {
            return Ok(Arc::clone(board));
        }
        let board =
            Arc::new(Leaderboard::read(pool, &self.games, self.edition, earlier.as_deref()).await?);
        let mut kept = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(Arc::clone(&board));
        Ok(board)
    }

    /// Keeps the board of a running edition good, as long as somebody looks at it.
    async fn keep(&self, pool: &PgPool) -> Result<()> {
        while self.is_of_interest() {
            tokio::time::sleep(REST).await;
            let edition = editions::get(pool, self.edition).await?.ok_or(Error::RowNotFound)?;
            if edition.state != EditionState::Running {
                break;
            }
            self.make(pool, edition.counted).await?;
        }
        Ok(())
    }
}

/// The boards of a database.
#[derive(Clone, Debug)]
pub struct LeaderboardCache {
    pool: PgPool,
    games: Games,
    slots: Cache<EditionId, Slot>,
    /// Of complete editions.
    ranks: Cache<EditionId, Ranks>,
    /// They end with the last of the boards.
    keepers: Arc<Mutex<JoinSet<()>>>,
}

impl LeaderboardCache {
    /// No board kept yet; all are of these games.
    pub fn new(pool: PgPool, games: Games) -> Self {
        let slots = Cache::new(KEPT);
        let ranks = Cache::new(KEPT_RANKS);
        Self { pool, games, slots, ranks, keepers: Arc::default() }
    }

    /// The board of an edition.
    pub async fn get(&self, edition: &Edition) -> Result<Arc<Leaderboard>> {
        let slot =
            self.slots.get_or_insert_with(edition.id, || Slot::new(edition.id, self.games.clone()));
        slot.look();
        let runs = edition.state == EditionState::Running;
        if let Some(board) = slot.board()
            && (board.counted == edition.counted || runs && slot.is_kept())
        {
            return Ok(board);
        }
        let board = slot.make(&self.pool, edition.counted).await?;
        if runs {
            self.keep(&slot);
        }
        Ok(board)
    }

    /// Who had which rank in these complete editions: a bot may have been in hundreds.
    pub async fn ranks(
        &self,
        game: &Game,
        editions: &[EditionId],
    ) -> Result<HashMap<EditionId, Arc<Ranks>>> {
        let kept = |id: &EditionId| Some((*id, self.ranks.get(*id, None)?));
        let mut found: HashMap<_, _> = editions.iter().filter_map(kept).collect();
        let unknown = editions.iter().copied().filter(|id| !found.contains_key(id));
        let unknown: Vec<_> = unknown.collect();
        if unknown.is_empty() {
            return Ok(found);
        }
        let mut db = self.pool.acquire().await?;
        standings::each_field(&mut db, &unknown, |edition, field| {
            let mut ranks = vec![(0, false); field.len()];
            for RankedContestant { rank, tied, contestant } in ranking::rank(game, field) {
                let entrant = usize::try_from(contestant.entrant.0).unwrap_or(usize::MAX);
                if let Some(own) = ranks.get_mut(entrant) {
                    *own = (rank, tied);
                }
            }
            found.insert(edition, self.ranks.insert(edition, ranks));
        })
        .await?;
        Ok(found)
    }

    /// Gives a slot a keeper, unless it has one.
    fn keep(&self, slot: &Arc<Slot>) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_kept() {
            return;
        }
        while keepers.try_join_next().is_some() {}
        let (kept, pool) = (Arc::clone(slot), self.pool.clone());
        // Where the database fails, the next who looks is told so.
        let keeper = keepers.spawn(async move { drop(kept.keep(&pool).await) });
        *slot.keeper.lock().unwrap_or_else(PoisonError::into_inner) = Some(keeper);
    }
}
