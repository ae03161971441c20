//! Lots that may have been played for an earlier edition are looked up before they are leased.

use arbiter_proto::ids::EditionId;
use sqlx::Result;

use super::{Queue, again};
use crate::db::invalidated_matches;
use crate::db::lots::{self, Weighed};

/// How far along chains lots are weighed at a time: others wait for their turn meanwhile.
const PASSES: usize = 64;

impl Queue {
    /// Looks up the lots of an edition that are to be weighed, and those that wait for what is
    /// found, and so on; returns how many lots were decided. Several may do so at once.
    ///
    /// `chained` says whether files pass between its matches.
    pub async fn check_reuse(&self, edition: EditionId, chained: bool) -> Result<u64> {
        let mut decided = 0;
        for _ in 0..PASSES {
            let some = self.check_reuse_once(edition, chained).await?;
            if some == 0 {
                break;
            }
            decided += some;
        }
        Ok(decided)
    }

    /// Weighs the lots that can be weighed now, and not those that follow from them.
    pub(super) async fn check_reuse_once(&self, edition: EditionId, chained: bool) -> Result<u64> {
        again(|| self.check_reuse_some(edition, chained)).await
    }

    async fn check_reuse_some(&self, edition: EditionId, chained: bool) -> Result<u64> {
        let mut transaction = self.pool().begin().await?;
        let weighed = lots::weigh(&mut *transaction, edition, chained).await?;
        if weighed.is_empty() {
            return Ok(0);
        }
        let mut weighed = weighed;
        if weighed.iter().any(|lot| lot.played) {
            // What is not void when it is looked at stays so until it is taken over.
            invalidated_matches::hold_off(&mut *transaction, edition).await?;
            lots::leave_void(&mut transaction, edition, &mut weighed).await?;
        }
        let played: Vec<Weighed> = weighed.iter().copied().filter(|lot| lot.played).collect();
        if !played.is_empty() {
            lots::take(&mut transaction, edition, &played).await?;
        }
        lots::decide(&mut *transaction, edition, &weighed).await?;
        let feeding = played.iter().filter(|lot| lot.feeds);
        let feeding: Vec<_> = feeding.map(|lot| lot.number.0).collect();
        if !feeding.is_empty() {
            lots::promote(&mut *transaction, edition, &feeding).await?;
        }
        transaction.commit().await?;
        Ok(weighed.len() as u64)
    }
}
