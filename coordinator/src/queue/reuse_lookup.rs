//! Checks before lots are leased whether an earlier edition played them. If so, their results are
//! reused.

use arbiter_proto::ids::EditionId;
use sqlx::Result;

use super::{Queue, retry};
use crate::db::invalidated_matches;
use crate::db::lots::{self, ReuseCandidate};

/// Maximum number of steps along a chain of lots in one call, so that other editions do not wait
/// too long.
const MAX_PASSES: usize = 64;

impl Queue {
    /// Checks lots of an edition for reuse, then those that depend on their results, and so on.
    /// Returns the number of decided lots. Concurrent calls are safe.
    ///
    /// `chained` says whether files pass between its matches.
    pub async fn check_reuse(&self, edition: EditionId, chained: bool) -> Result<u64> {
        let mut decided = 0;
        for _ in 0..MAX_PASSES {
            let newly_decided = self.check_reuse_once(edition, chained).await?;
            if newly_decided == 0 {
                break;
            }
            decided += newly_decided;
        }
        Ok(decided)
    }

    /// Checks the lots that can be checked now, without those that depend on them.
    pub(super) async fn check_reuse_once(&self, edition: EditionId, chained: bool) -> Result<u64> {
        retry(|| self.check_reuse_some(edition, chained)).await
    }

    async fn check_reuse_some(&self, edition: EditionId, chained: bool) -> Result<u64> {
        let mut transaction = self.pool().begin().await?;
        let mut candidates = lots::find_reusable(&mut *transaction, edition, chained).await?;
        if candidates.is_empty() {
            return Ok(0);
        }
        if candidates.iter().any(|lot| lot.played) {
            // Prevents an invalidation between this check and the reuse.
            invalidated_matches::lock_against_invalidation(&mut *transaction, edition).await?;
            lots::exclude_void(&mut transaction, edition, &mut candidates).await?;
        }
        let played: Vec<ReuseCandidate> =
            candidates.iter().copied().filter(|lot| lot.played).collect();
        if !played.is_empty() {
            lots::copy_results(&mut transaction, edition, &played).await?;
        }
        lots::finish_reuse_check(&mut *transaction, edition, &candidates).await?;
        let with_dependents = played.iter().filter(|lot| lot.has_dependents);
        let with_dependents: Vec<_> = with_dependents.map(|lot| lot.number.0).collect();
        if !with_dependents.is_empty() {
            lots::promote(&mut *transaction, edition, &with_dependents).await?;
        }
        transaction.commit().await?;
        Ok(candidates.len() as u64)
    }
}
