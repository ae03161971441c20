//! A short-lived cache of tournaments with a running edition. Many clients poll the progress of an
//! edition, and counting it reads all its lots.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arbiter_proto::v1::{GetTournamentRequest, Tournament};

use super::{Caller, Result, Service};
use crate::cache::Cache;

/// The age at which an entry is refreshed in the background.
const REFRESH_AFTER: Duration = Duration::from_millis(500);
/// Maximum age of an entry that is used.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of entries in memory.
pub(super) const MAX_ENTRIES: usize = 64;

/// The name of a tournament, and whether the reader is an organiser, who may see more than others.
type Key = (String, bool);

/// A tournament that was read a moment ago.
#[derive(Debug)]
pub(super) struct Entry {
    /// When reading it began.
    read_at: Instant,
    /// Whether its refresh has begun.
    is_refreshing: AtomicBool,
    tournament: Tournament,
}

/// Tournaments that were read a moment ago.
pub(super) type ProgressCache = Cache<Key, Entry>;

impl Service {
    /// The state of a tournament. If an edition is running, the state may be up to a second old.
    pub(crate) async fn cached_tournament(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Tournament> {
        let key = (request.tournament, caller.is_organiser());
        let entry = self.progress_cache.get(&key, None);
        let Some(entry) = entry.filter(|entry| entry.read_at.elapsed() < MAX_AGE) else {
            return self.refresh_tournament(key, caller).await;
        };
        let is_old = entry.read_at.elapsed() >= REFRESH_AFTER;
        if is_old && !entry.is_refreshing.swap(true, Ordering::Relaxed) {
            let service = self.clone();
            let caller = caller.clone();
            // If the refresh fails, the entry expires and the next caller gets the error.
            tokio::spawn(async move { drop(service.refresh_tournament(key, &caller).await) });
        }
        Ok(entry.tournament.clone())
    }

    async fn refresh_tournament(&self, key: Key, caller: &Caller) -> Result<Tournament> {
        let read_at = Instant::now();
        let row = self.tournament(&key.0).await?;
        let tournament = self.tournament_message(row, caller).await?;
        if tournament.editions.iter().any(|edition| edition.state == "running") {
            let is_refreshing = AtomicBool::new(false);
            let entry = Entry { read_at, is_refreshing, tournament: tournament.clone() };
            self.progress_cache.insert(key, entry);
        } else {
            self.progress_cache.remove(&key);
        }
        Ok(tournament)
    }
}
