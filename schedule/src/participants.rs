//! The bots of a plan.

use std::sync::Arc;

use super::Owner;
use super::foursomes::{IncrementalPlan, IncrementalTables};

/// The bots of a plan; for an incremental plan also its tables and owners. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Participants {
    bots: usize,
    incremental: Option<Arc<IncrementalPlan>>,
}

impl From<usize> for Participants {
    /// This many bots, without a history.
    fn from(bots: usize) -> Self {
        Self { bots, incremental: None }
    }
}

impl From<IncrementalPlan> for Participants {
    /// The bots of an incremental plan.
    fn from(plan: IncrementalPlan) -> Self {
        Self { bots: plan.bots, incremental: Some(Arc::new(plan)) }
    }
}

impl Participants {
    /// The number of bots.
    pub fn bots(&self) -> usize {
        self.bots
    }

    /// The owners of the bots if owners are kept apart; otherwise empty.
    pub fn owners(&self) -> &[Option<Owner>] {
        self.incremental.as_ref().map_or(&[], |plan| &plan.owners)
    }

    /// The number of tables that the last change added; `None` if the plan is not incremental.
    pub fn new_tables(&self) -> Option<u64> {
        self.incremental.as_ref().map(|plan| plan.new_tables)
    }

    /// The tables; `None` if the plan is not incremental.
    pub(super) fn tables(&self) -> Option<IncrementalTables> {
        self.incremental.as_ref().map(IncrementalPlan::tables)
    }
}
