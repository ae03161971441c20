//! Limits the concurrent requests that read all matches of an edition. Such requests need no token,
//! and many at the same time would slow down all other requests. Organisers are not limited.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{Caller, Result, Service, ServiceError};

/// Maximum number of such requests that run at the same time.
const MAX_CONCURRENT: usize = 3;
/// How long a request waits for a permit before it is refused.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The free permits.
#[derive(Clone, Debug)]
pub(super) struct ConcurrencyLimit {
    permits: Arc<Semaphore>,
    max_wait: Duration,
}

impl Default for ConcurrencyLimit {
    fn default() -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_CONCURRENT)), max_wait: MAX_WAIT }
    }
}

impl ConcurrencyLimit {
    /// Waits for a permit; organisers need none. Dropping the permit frees it.
    pub(super) async fn acquire(&self, caller: &Caller) -> Result<Option<OwnedSemaphorePermit>> {
        if caller.is_organiser() {
            return Ok(None);
        }
        match timeout(self.max_wait, Arc::clone(&self.permits).acquire_owned()).await {
            Ok(permit) => Ok(permit.ok()),
            Err(_) => Err(ServiceError::resource_exhausted(
                "too many slow requests are running; try again in a moment",
            )),
        }
    }
}

impl Service {
    /// Waits for a permit to run a slow query. Dropping the permit frees it.
    pub(crate) async fn permit(&self, caller: &Caller) -> Result<Option<OwnedSemaphorePermit>> {
        self.query_limit.acquire(caller).await
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::TokenId;

    use super::*;
    use crate::access::Role;
    use crate::service::{ErrorKind, Principal};

    #[tokio::test]
    async fn the_public_is_limited_and_organisers_are_not() {
        let limit = ConcurrencyLimit { max_wait: Duration::ZERO, ..ConcurrencyLimit::default() };
        let public = Caller::default();
        let mut permits = Vec::new();
        for _ in 0..MAX_CONCURRENT {
            permits.push(limit.acquire(&public).await.unwrap().unwrap());
        }
        assert_eq!(limit.acquire(&public).await.unwrap_err().kind(), ErrorKind::ResourceExhausted);
        let name = "organiser".to_owned();
        let organiser =
            Caller::Known(Principal { id: TokenId(1), role: Role::Organiser, name, handle: None });
        assert!(limit.acquire(&organiser).await.unwrap().is_none());
        permits.pop();
        assert!(limit.acquire(&public).await.unwrap().is_some());
    }
}
