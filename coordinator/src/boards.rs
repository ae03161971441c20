//! Leaderboards, kept in memory as they are asked for.
//!
//! Ranking ten thousand bots takes longer than a page may. The standings of an edition change only
//! together with its count of matches, so a board is good as long as that count stands, which is
//! one row to look up. While matches go on a board that is a moment old is shown at once, and a
//! new one is made meanwhile; a complete edition is never shown otherwise than complete.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use arbiter_games::GameName;
use arbiter_proto::ids::{EditionId, Entrant};
use sqlx::{Error, PgPool};

use crate::db::editions::{self, Edition, EditionState};
use crate::db::entrants::Roster;
use crate::db::standings;
use crate::ranking::{self, Place};

/// How old a board of a running edition may be when it is shown.
const OLDEST: Duration = Duration::from_secs(1);
/// Boards that are kept.
const KEPT: usize = 64;

/// A leaderboard as it was at a moment.
#[derive(Debug)]
pub struct Board {
    /// The game.
    pub game: GameName,
    /// How many matches are in it.
    pub counted: i64,
    /// The places, the best first.
    pub places: Vec<Place>,
    /// Who takes part.
    pub roster: Roster,
    /// Where each entrant stands in `places`.
    positions: HashMap<Entrant, usize>,
}

impl Board {
    /// The place of an entrant.
    pub fn place(&self, entrant: Entrant) -> Option<&Place> {
        self.positions.get(&entrant).and_then(|position| self.places.get(*position))
    }

    /// Ranks an edition as its standings are now.
    async fn read(pool: &PgPool, edition: EditionId) -> Result<Self, Error> {
        let mut transaction = pool.begin().await?;
        // Count and standings as they were at one moment, while others go on.
        let snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        sqlx::query(snapshot).execute(&mut *transaction).await?;
        let game = editions::game(&mut *transaction, edition).await?;
        let roster = Roster::of(&mut *transaction, edition).await?;
        let counted = editions::counted(&mut *transaction, edition).await?;
        let contestants = standings::contestants(&mut transaction, edition).await?;
        transaction.commit().await?;
        let places = ranking::rank(game, contestants);
        let number = |(position, place): (usize, &Place)| (place.contestant.entrant, position);
        let positions = places.iter().enumerate().map(number).collect();
        Ok(Self { game, counted, places, roster, positions })
    }
}

/// A board that is kept, and since when.
#[derive(Clone, Debug)]
struct Kept {
    board: Arc<Board>,
    made: Instant,
}

/// What is kept of one edition.
#[derive(Debug, Default)]
struct Slot {
    kept: RwLock<Option<Kept>>,
    /// Held while a board is made, so that it is made once for all who wait for it.
    making: Arc<tokio::sync::Mutex<()>>,
}

/// The boards of a database.
#[derive(Clone, Debug)]
pub struct Boards {
    pool: PgPool,
    slots: Arc<Mutex<HashMap<EditionId, Arc<Slot>>>>,
}

impl Boards {
    /// No board kept yet.
    pub fn new(pool: PgPool) -> Self {
        Self { pool, slots: Arc::default() }
    }

    /// The board of an edition.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn get(&self, edition: &Edition) -> Result<Arc<Board>, Error> {
        let slot = self.slot(edition.id);
        let kept = slot.kept.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Kept { board, made }) = kept {
            if board.counted == edition.counted {
                return Ok(board);
            }
            if edition.state == EditionState::Running && made.elapsed() < OLDEST {
                let (boards, edition) = (self.clone(), edition.clone());
                if let Ok(making) = Arc::clone(&slot.making).try_lock_owned() {
                    tokio::spawn(async move {
                        // Whoever asks after this is told what failed.
                        drop(boards.make(&slot, &edition).await);
                        drop(making);
                    });
                }
                return Ok(board);
            }
        }
        let _making = slot.making.lock().await;
        let kept = slot.kept.read().unwrap_or_else(PoisonError::into_inner).clone();
        match kept {
            Some(Kept { board, .. }) if board.counted >= edition.counted => Ok(board),
            _ => self.make(&slot, edition).await,
        }
    }

    /// Makes the board of an edition anew, and keeps it.
    async fn make(&self, slot: &Slot, edition: &Edition) -> Result<Arc<Board>, Error> {
        let board = Arc::new(Board::read(&self.pool, edition.id).await?);
        let kept = Kept { board: Arc::clone(&board), made: Instant::now() };
        *slot.kept.write().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        Ok(board)
    }

    fn slot(&self, edition: EditionId) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= KEPT && !slots.contains_key(&edition) {
            // Old editions are asked for least.
            if let Some(oldest) = slots.keys().min().copied() {
                slots.remove(&oldest);
            }
        }
        Arc::clone(slots.entry(edition).or_default())
    }
}
