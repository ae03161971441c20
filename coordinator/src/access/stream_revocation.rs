//! Ends streams whose token was revoked, has expired, or has a new secret.
//!
//! A call is authenticated once, but a stream may last for days. So each coordinator checks the
//! tokens of its open streams twice a second, all in one query.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{PgPool, Result};
use tokio::sync::watch;

use super::Secret;
use crate::db::tokens;

/// How often the tokens of open streams are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

type Hash = [u8; 32];

/// A token with open streams.
#[derive(Debug, Default)]
struct Entry {
    streams: usize,
    /// Whether it was ever valid: public streams are open to callers with invalid tokens, too.
    was_valid: bool,
    ended: watch::Sender<bool>,
}

/// The tokens of open streams.
#[derive(Clone, Debug, Default)]
pub struct OpenTokens(Arc<Mutex<HashMap<Hash, Entry>>>);

impl OpenTokens {
    fn entries(&self) -> MutexGuard<'_, HashMap<Hash, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a stream with this token, until the returned value is dropped. `is_valid` says
    /// whether the token is known to be valid.
    pub(crate) fn register(&self, secret: &Secret, is_valid: bool) -> OpenToken {
        let hash = secret.hash();
        let mut entries = self.entries();
        let entry = entries.entry(hash).or_default();
        entry.streams += 1;
        entry.was_valid |= is_valid;
        OpenToken { hash, ended: entry.ended.subscribe(), all: self.clone() }
    }

    /// Checks the tokens repeatedly, without end.
    pub(crate) async fn run(&self, pool: &PgPool) {
        loop {
            tokio::time::sleep(CHECK_INTERVAL).await;
            // After a failure the next check covers all tokens again.
            if let Err(error) = self.check(pool).await {
                tracing::debug!(%error, "cannot check the tokens of open streams");
            }
        }
    }

    async fn check(&self, pool: &PgPool) -> Result<()> {
        let hashes: Vec<_> = self.entries().keys().copied().collect();
        if hashes.is_empty() {
            return Ok(());
        }
        let ended: HashSet<_> = tokens::invalid_hashes(pool, &hashes).await?.into_iter().collect();
        let mut entries = self.entries();
        for hash in hashes {
            let Some(entry) = entries.get_mut(&hash) else { continue };
            if !ended.contains(&hash) {
                entry.was_valid = true;
            } else if entry.was_valid {
                entry.ended.send_replace(true);
            }
        }
        Ok(())
    }
}

/// The token of an open stream.
#[derive(Debug)]
pub(crate) struct OpenToken {
    hash: Hash,
    ended: watch::Receiver<bool>,
    all: OpenTokens,
}

impl OpenToken {
    /// Waits until the token has ended.
    pub(crate) async fn ended(&self) {
        let mut ended = self.ended.clone();
        // This cannot fail: the sender lives as long as `self`.
        drop(ended.wait_for(|ended| *ended).await);
    }
}

impl Drop for OpenToken {
    fn drop(&mut self) {
        let mut entries = self.all.entries();
        if let Some(entry) = entries.get_mut(&self.hash) {
            entry.streams -= 1;
            if entry.streams == 0 {
                entries.remove(&self.hash);
            }
        }
    }
}
