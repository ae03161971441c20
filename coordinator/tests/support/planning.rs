//! Editions with the matches and lots that a test chooses.

use arbiter_coordinator::db::lots::InitialLot;
use arbiter_coordinator::db::matches::{self, Match};
use arbiter_coordinator::db::{self, editions, partitions};
use arbiter_coordinator::queue::{Extension, NewLot, Order, PlanError, Queue, extend};
use arbiter_proto::ids::EditionId;

/// Matches that an edition adds, each in one lot.
#[derive(Debug)]
pub(crate) struct Plan<M, L, O> {
    /// The matches.
    pub(crate) matches: M,
    /// The lots that hold them.
    pub(crate) lots: L,
    /// The dependencies between lots.
    pub(crate) order: O,
    /// Whether more matches may follow.
    pub(crate) open_ended: bool,
}

/// Adds matches to editions, and starts them.
pub(crate) trait Planning {
    /// Adds all matches of a plan or none, and returns their number.
    async fn plan<M, L, O>(
        &self,
        edition: EditionId,
        plan: Plan<M, L, O>,
    ) -> Result<u64, PlanError>
    where
        M: Iterator<Item = Match>,
        L: Iterator<Item = NewLot>,
        O: Iterator<Item = Order>;

    /// Starts a planned edition. Returns whether it was being planned.
    async fn start(&self, edition: EditionId) -> Result<bool, sqlx::Error>;
}

impl Planning for Queue {
    async fn plan<M, L, O>(&self, edition: EditionId, plan: Plan<M, L, O>) -> Result<u64, PlanError>
    where
        M: Iterator<Item = Match>,
        L: Iterator<Item = NewLot>,
        O: Iterator<Item = Order>,
    {
        let mut transaction = self.pool().begin().await?;
        let db = &mut *transaction;
        db::lift_time_limits(&mut *db).await?;
        let scope = editions::scope(&mut *db, edition).await?;
        let added = matches::copy_in(&mut *db, scope.tournament, plan.matches).await?;
        let extension = Extension {
            lots: plan.lots.map(InitialLot::from),
            order: plan.order,
            end: scope.end + added.cast_signed(),
            from: scope.from,
            matches: added.cast_signed(),
            open_ended: plan.open_ended,
        };
        extend(&mut *db, scope, extension).await?;
        partitions::attach_matches(&mut *db, scope.tournament).await?;
        transaction.commit().await?;
        Ok(added)
    }

    async fn start(&self, edition: EditionId) -> Result<bool, sqlx::Error> {
        editions::start(self.pool(), edition).await
    }
}
