//! A short-lived cache of the states of tournaments. Many clients poll them, and a tournament of
//! ten thousand bots takes long to read.
//!
//! While a tournament is in the cache, at most one request reads it at a time. The others wait for
//! it without a connection to the database, and take its result if it is fresh enough for them: if
//! reading began after they came or, while an edition is running, less than [`MAX_AGE`] before. So
//! a change is shown to all that come after it, or a second later while an edition is running. An
//! error is shared in the same way: if the database does not respond, requests do not wait for it
//! one after the other. Only the outlook for one more bot may be older
//! ([`super::tournaments::OUTLOOK_MAX_AGE`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arbiter_proto::v1::{GetTournamentRequest, Tournament};

use super::{Caller, Result, Service};
use crate::cache::Cache;

/// The age at which the state of a running edition is refreshed in the background.
const REFRESH_AFTER: Duration = Duration::from_millis(500);
/// Maximum age of a state of a running edition that is used.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Maximum number of tournaments in memory.
pub(super) const MAX_ENTRIES: usize = 64;

/// The name of a tournament, and whether the reader is an organiser, who may see more than others.
type Key = (String, bool);

/// The states of tournaments that were read a moment ago.
pub(super) type ProgressCache = Cache<Key, Progress>;

/// The newest state of a tournament.
#[derive(Debug, Default)]
pub(super) struct Progress {
    latest: Mutex<Option<State>>,
    /// Held by the request that reads the tournament.
    reading: Arc<tokio::sync::Mutex<()>>,
}

/// A state of a tournament.
#[derive(Clone, Debug)]
struct State {
    /// When reading it began.
    began: Instant,
    is_running: bool,
    result: Result<Arc<Tournament>>,
}

impl Progress {
    /// The newest state, if it is fresh enough for a request that came at this time.
    fn fresh_for(&self, arrival: Instant) -> Option<State> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_young = |state: &State| state.is_running && state.began.elapsed() < MAX_AGE;
        latest.filter(|state| state.began >= arrival || is_young(state))
    }

    fn set(&self, state: State) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
    }
}

impl Service {
    /// The state of a tournament. If an edition is running, the state may be up to a second old.
    pub(crate) async fn cached_tournament(
        &self,
        caller: &Caller,
        request: GetTournamentRequest,
    ) -> Result<Arc<Tournament>> {
        let arrival = Instant::now();
        let key = (request.tournament, caller.is_organiser());
        let progress = if let Some(progress) = self.progress_cache.get(&key, None) {
            progress
        } else {
            // Names that do not exist would push out those that do.
            self.tournament(&key.0).await?;
            self.progress_cache.get_or_insert_with(key.clone(), Progress::default)
        };
        if let Some(state) = progress.fresh_for(arrival) {
            if state.began.elapsed() >= REFRESH_AFTER
                && let Ok(turn) = Arc::clone(&progress.reading).try_lock_owned()
            {
                let service = self.clone();
                let caller = caller.clone();
                tokio::spawn(async move {
                    let state = service.read_state(&key.0, &caller).await;
                    // After an error, the present state is used until it is too old.
                    if state.result.is_ok() {
                        progress.set(state);
                    }
                    drop(turn);
                });
            }
            return state.result;
        }
        let _turn = progress.reading.lock().await;
        if let Some(state) = progress.fresh_for(arrival) {
            return state.result;
        }
        let state = self.read_state(&key.0, caller).await;
        progress.set(state.clone());
        state.result
    }

    async fn read_state(&self, name: &str, caller: &Caller) -> State {
        let began = Instant::now();
        let read = async {
            let row = self.tournament(name).await?;
            Ok(Arc::new(self.tournament_message(row, caller).await?))
        };
        let result = read.await;
        let is_running = result.as_ref().is_ok_and(|tournament: &Arc<Tournament>| {
            tournament.editions.iter().any(|edition| edition.state == "running")
        });
        State { began, is_running, result }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ServiceError;

    /// A tournament whose state was read this long ago, with a running edition or without.
    fn read_before(age: Duration, is_running: bool, result: Result<Arc<Tournament>>) -> Progress {
        let progress = Progress::default();
        let began = Instant::now().checked_sub(age).expect("the machine runs longer");
        progress.set(State { began, is_running, result });
        progress
    }

    #[test]
    fn a_request_gets_no_state_that_is_older_than_it_may_be() {
        let second = Duration::from_secs(1);
        let earlier = Instant::now().checked_sub(60 * second).expect("the machine runs longer");
        let now = Instant::now();
        let cases = [
            // When the request came, the age of the state, whether an edition is running.
            (now, second / 4, true, true),
            (now, second / 4, false, false),
            (now, 2 * second, true, false),
            (earlier, second / 4, false, true),
            (earlier, 2 * second, true, true),
            (earlier, 90 * second, true, false),
        ];
        for (arrival, age, is_running, is_fresh) in cases {
            let found = read_before(age, is_running, Ok(Arc::default())).fresh_for(arrival);
            assert_eq!(found.is_some(), is_fresh, "{age:?} old, running: {is_running}");
        }
        assert!(Progress::default().fresh_for(earlier).is_none());
    }

    #[test]
    fn requests_that_waited_for_a_failed_read_get_its_error() {
        let arrival = Instant::now();
        let failed = read_before(Duration::ZERO, false, Err(ServiceError::stopping()));
        let found = failed.fresh_for(arrival).expect("it was read after the request came");
        assert!(found.result.is_err());
    }
}
