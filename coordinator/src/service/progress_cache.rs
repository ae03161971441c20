//! A short-lived cache of the states of tournaments. Many clients poll them, and a tournament of
//! ten thousand bots takes long to read.
//!
//! A state is fresh enough for a request if reading it began after the request came or, while an
//! edition is running, less than [`MAX_AGE`] before. So a change is shown to all that come after
//! it, or a second later while an edition is running. Only the outlook for one more bot may be
//! older ([`super::tournaments::OUTLOOK_MAX_AGE`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_proto::v1::{GetTournamentRequest, Tournament};

use super::refreshed_cache::{ReadResult, RefreshedValue};
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
pub(super) type ProgressCache = Cache<Key, RefreshedValue<Tournament>>;

/// Whether a state is fresh enough for a request that came at this time.
fn is_fresh_for(state: &ReadResult<Tournament>, arrival: Instant) -> bool {
    let is_running = state.result.as_ref().is_ok_and(|tournament| {
        tournament.editions.iter().any(|edition| edition.state == "running")
    });
    state.began >= arrival || is_running && state.began.elapsed() < MAX_AGE
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
        let state = if let Some(state) = self.progress_cache.get(&key, None) {
            state
        } else {
            // Names that do not exist would push out those that do.
            self.tournament(&key.0).await?;
            self.progress_cache.get_or_insert_with(key.clone(), RefreshedValue::default)
        };
        let service = self.clone();
        let caller = caller.clone();
        let read = async move {
            let row = service.tournament(&key.0).await?;
            service.tournament_message(row, &caller).await
        };
        state.get(|state| is_fresh_for(state, arrival), REFRESH_AFTER, Box::pin(read)).await
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::v1::Edition;

    use super::*;
    use crate::service::ServiceError;

    #[test]
    fn a_request_gets_no_state_that_is_older_than_it_may_be() {
        let second = Duration::from_secs(1);
        let before = |age| Instant::now().checked_sub(age).expect("the machine runs longer");
        let now = Instant::now();
        let earlier = before(60 * second);
        let edition = Edition { state: "running".to_owned(), ..Edition::default() };
        let tournament = Tournament { editions: vec![edition], ..Tournament::default() };
        let running = Ok(Arc::new(tournament));
        let idle = Ok(Arc::default());
        let failed = Err(ServiceError::stopping());
        let cases = [
            // When the request came, the age of the state, the state, and whether it is fresh.
            (now, second / 4, &running, true),
            (now, second / 4, &idle, false),
            (now, second / 4, &failed, false),
            (now, 2 * second, &running, false),
            (earlier, second / 4, &idle, true),
            (earlier, second / 4, &failed, true),
            (earlier, 2 * second, &running, true),
            (earlier, 90 * second, &running, false),
        ];
        for (arrival, age, result, is_fresh) in cases {
            let began = before(age);
            let state = ReadResult { began, ended: began, result: result.clone() };
            assert_eq!(is_fresh_for(&state, arrival), is_fresh, "{age:?} old: {result:?}");
        }
    }
}
