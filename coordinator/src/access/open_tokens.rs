//! Streams end when their token does: it was revoked, or has ended by itself, or its secret was
//! replaced.
//!
//! A call is let in once, and a stream may last for days. So each coordinator asks the database twice
//! a second which of the tokens of its open streams are still good, all in one question.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::{PgPool, Result};
use tokio::sync::watch;

use super::Secret;
use crate::db::tokens;

/// How often it is looked which tokens are still good.
const LOOK: Duration = Duration::from_millis(500);

type Hash = [u8; 32];

/// A token with open streams.
#[derive(Debug, Default)]
struct Entry {
    streams: usize,
    /// Whether it was ever good: public streams are open to callers with wrong tokens, too.
    was_good: bool,
    ended: watch::Sender<bool>,
}

/// The tokens of open streams.
#[derive(Clone, Debug, Default)]
pub struct OpenTokens(Arc<Mutex<HashMap<Hash, Entry>>>);

impl OpenTokens {
    fn entries(&self) -> MutexGuard<'_, HashMap<Hash, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream with this token is open until what is returned is dropped; `is_good` says whether it
    /// is known to be good.
    pub(crate) fn enter(&self, secret: &Secret, is_good: bool) -> OpenToken {
        let hash = secret.hash();
        let mut entries = self.entries();
        let entry = entries.entry(hash).or_default();
        entry.streams += 1;
        entry.was_good |= is_good;
        OpenToken { hash, ended: entry.ended.subscribe(), all: self.clone() }
    }

    /// Looks again and again which tokens have ended, for ever.
    pub(crate) async fn run(&self, pool: &PgPool) {
        loop {
            tokio::time::sleep(LOOK).await;
            // What cannot be asked now is asked at the next look.
            if let Err(error) = self.look(pool).await {
                tracing::debug!(%error, "cannot look which tokens are still good");
            }
        }
    }

    async fn look(&self, pool: &PgPool) -> Result<()> {
        let open: Vec<_> = self.entries().keys().copied().collect();
        if open.is_empty() {
            return Ok(());
        }
        let ended: HashSet<_> = tokens::ended(pool, &open).await?.into_iter().collect();
        let mut entries = self.entries();
        for hash in open {
            let Some(entry) = entries.get_mut(&hash) else { continue };
            if !ended.contains(&hash) {
                entry.was_good = true;
            } else if entry.was_good {
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
        // It cannot fail: the sender stays as long as this is here.
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
