//! Turns: requests that read all matches of an edition, and that everybody may make, take turns, so
//! that a crowd that asks them holds up nothing else. Organisers need not wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::{Caller, Result, Service, ServiceError};

/// So many of these requests are answered at the same time.
const TURNS: usize = 3;
/// How long somebody waits for a turn before being sent away.
const WAIT: Duration = Duration::from_secs(10);

/// The turns that are free.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    free: Arc<Semaphore>,
    /// How long somebody waits for one.
    wait: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(TURNS)), wait: WAIT }
    }
}

impl Turns {
    /// Waits for a turn, which is over when what is returned is dropped.
    async fn take(&self, caller: &Caller) -> Result<Option<OwnedSemaphorePermit>> {
        if caller.organises() {
            return Ok(None);
        }
        match timeout(self.wait, Arc::clone(&self.free).acquire_owned()).await {
            Ok(turn) => Ok(turn.ok()),
            Err(_) => Err(ServiceError::resource_exhausted(
                "too many ask for what takes long to answer at this moment",
            )),
        }
    }
}

impl Service {
    /// Waits for a turn to do what takes long, which is over when what is returned is dropped.
    pub(crate) async fn turn(&self, caller: &Caller) -> Result<Option<OwnedSemaphorePermit>> {
        self.turns.take(caller).await
    }
}

#[cfg(test)]
mod tests {
    use arbiter_proto::ids::TokenId;

    use super::*;
    use crate::access::Role;
    use crate::service::{ErrorKind, Principal};

    #[tokio::test]
    async fn the_public_takes_turns_and_organisers_do_not() {
        let turns = Turns { wait: Duration::ZERO, ..Turns::default() };
        let public = Caller::default();
        let mut taken = Vec::new();
        for _ in 0..TURNS {
            taken.push(turns.take(&public).await.unwrap().unwrap());
        }
        assert_eq!(turns.take(&public).await.unwrap_err().kind(), ErrorKind::ResourceExhausted);
        let organiser = Caller::Known(Principal { id: TokenId(1), role: Role::Organiser });
        assert!(turns.take(&organiser).await.unwrap().is_none());
        taken.pop();
        assert!(turns.take(&public).await.unwrap().is_some());
    }
}
