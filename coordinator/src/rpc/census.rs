//! How the lots of an edition stand, for everyone who asks. Counting them reads the whole edition,
//! which may have millions, so it takes a small part of the time at most, however many ask: in
//! between they are told what was counted last.

use std::sync::Arc;
use std::time::Duration;

use arbiter_proto::ids::EditionId;
use sqlx::{Error, PgPool};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::db::lots::{self, Census};
use crate::kept::Kept;

/// Editions whose last count is kept.
const EDITIONS: usize = 256;
/// Counting takes one part in so many of the time.
const PART: u32 = 20;

/// How lots stood when they were counted last, by edition.
#[derive(Clone, Debug)]
pub struct Censuses {
    counted: Kept<EditionId, Counted>,
    /// One edition is counted at a time.
    counting: Arc<Mutex<()>>,
}

#[derive(Debug)]
struct Counted {
    took: Duration,
    census: Vec<Census>,
}

impl Default for Censuses {
    fn default() -> Self {
        Self { counted: Kept::new(EDITIONS), counting: Arc::default() }
    }
}

impl Censuses {
    /// How the lots of an edition stand, or stood a short while ago.
    ///
    /// # Errors
    /// If the database fails.
    pub(super) async fn of(&self, pool: &PgPool, edition: EditionId) -> Result<Vec<Census>, Error> {
        let last = self.counted.get(edition, None);
        let _turn = match (self.recent(edition), self.counting.try_lock(), &last) {
            (Some(recent), ..) => return Ok(recent.census.clone()),
            (None, Ok(turn), _) => turn,
            (None, Err(_), Some(last)) => return Ok(last.census.clone()),
            (None, Err(_), None) => self.counting.lock().await,
        };
        if let Some(recent) = self.recent(edition) {
            return Ok(recent.census.clone());
        }
        let began = Instant::now();
        let census = lots::census(pool, edition).await?;
        let took = began.elapsed();
        Ok(self.counted.put(edition, Counted { took, census }).census.clone())
    }

    /// What was counted last, if that is recent enough.
    fn recent(&self, edition: EditionId) -> Option<Arc<Counted>> {
        let took = self.counted.get(edition, None)?.took;
        self.counted.get(edition, Some(took * PART))
    }
}
