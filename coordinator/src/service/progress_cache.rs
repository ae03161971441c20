//! A short-lived cache of tournaments with a running edition. Many clients poll the progress of an
//! edition, and counting it reads all its lots.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::v1::{GetTournamentRequest, Tournament};

use super::{Caller, Result, Service};

/// The age at which an entry is refreshed in the background.
const REFRESH_AFTER: Duration = Duration::from_millis(500);
/// Maximum age of an entry that is used.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Number of entries in memory at which expired ones are removed.
const MAX_ENTRIES: usize = 64;

/// The name of a tournament, and whether the reader is an organiser, who may see more than others.
type Key = (String, bool);

#[derive(Debug)]
struct Entry {
    read_at: Instant,
    /// When the last refresh began.
    refreshed_at: Instant,
    tournament: Tournament,
}

/// Tournaments that were read a moment ago.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgressCache(Arc<Mutex<HashMap<Key, Entry>>>);

impl Service {
    /// The state of a tournament. If an edition is running, the state may be up to a second old.
    pub(crate) async fn cached_tournament(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Tournament> {
        let key = (request.tournament, caller.is_organiser());
        let Some((tournament, is_old)) = self.progress_cache.get(&key) else {
            return self.refresh_tournament(key, caller).await;
        };
        if is_old {
            let service = self.clone();
            let caller = caller.clone();
            // If the refresh fails, the entry expires and the next caller gets the error.
            tokio::spawn(async move { drop(service.refresh_tournament(key, &caller).await) });
        }
        Ok(tournament)
    }

    async fn refresh_tournament(&self, key: Key, caller: &Caller) -> Result<Tournament> {
        let read_at = Instant::now();
        let row = self.tournament(&key.0).await?;
        let tournament = self.tournament_message(row, caller).await?;
        self.progress_cache.insert(key, read_at, &tournament);
        Ok(tournament)
    }
}

impl ProgressCache {
    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry, unless it has expired, and whether the caller must refresh it.
    fn get(&self, key: &Key) -> Option<(Tournament, bool)> {
        let mut entries = self.entries();
        let entry = entries.get_mut(key).filter(|entry| entry.read_at.elapsed() < MAX_AGE)?;
        let is_old = entry.refreshed_at.elapsed() >= REFRESH_AFTER;
        if is_old {
            entry.refreshed_at = Instant::now();
        }
        Some((entry.tournament.clone(), is_old))
    }

    /// Stores a tournament if an edition of it runs.
    fn insert(&self, key: Key, read_at: Instant, tournament: &Tournament) {
        let mut entries = self.entries();
        if !tournament.editions.iter().any(|edition| edition.state == "running") {
            entries.remove(&key);
            return;
        }
        if entries.len() >= MAX_ENTRIES {
            entries.retain(|_, entry| entry.read_at.elapsed() < MAX_AGE);
        }
        let entry = Entry { read_at, refreshed_at: read_at, tournament: tournament.clone() };
        entries.insert(key, entry);
    }
}
