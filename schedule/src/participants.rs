//! The bots that a plan is made for.

use std::sync::Arc;

use super::Owner;
use super::foursomes::{IncrementalPlan, IncrementalTables};

/// The bots of a plan. An incremental plan adds its tables and owners. Clones are cheap.
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

    /// In an incremental plan: how many tables the last change added.
    pub fn new_tables(&self) -> Option<u64> {
        self.incremental.as_ref().map(|plan| plan.new_tables)
    }

    /// The tables of an incremental plan.
    pub(super) fn tables(&self) -> Option<IncrementalTables> {
        self.incremental.as_ref().map(IncrementalPlan::tables)
    }
}
