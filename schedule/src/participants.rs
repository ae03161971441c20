//! The bots of a plan.

use std::sync::Arc;

use super::Owner;
use super::foursomes::IncrementalPlan;
use super::tables::TablePlan;

/// The bots of a plan; for a plan with a history also its tables and owners. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Participants {
    bots: usize,
    plan: Option<HistoryPlan>,
}

/// A plan that depends on a history.
#[derive(Clone, Debug)]
pub(super) enum HistoryPlan {
    Foursomes(Arc<IncrementalPlan>),
    Tables(Arc<TablePlan>),
}

impl From<usize> for Participants {
    /// This many bots, without a history.
    fn from(bots: usize) -> Self {
        Self { bots, plan: None }
    }
}

impl From<IncrementalPlan> for Participants {
    /// The bots of an incremental plan of foursomes.
    fn from(plan: IncrementalPlan) -> Self {
        Self { bots: plan.bots, plan: Some(HistoryPlan::Foursomes(Arc::new(plan))) }
    }
}

impl From<TablePlan> for Participants {
    /// The bots of a plan of tables.
    fn from(plan: TablePlan) -> Self {
        Self { bots: plan.bots, plan: Some(HistoryPlan::Tables(Arc::new(plan))) }
    }
}

impl Participants {
    /// The number of bots.
    pub fn bots(&self) -> usize {
        self.bots
    }

    /// The owners of the bots if owners are kept apart; otherwise empty.
    pub fn owners(&self) -> &[Option<Owner>] {
        match &self.plan {
            Some(HistoryPlan::Foursomes(plan)) => &plan.owners,
            Some(HistoryPlan::Tables(_)) | None => &[],
        }
    }

    /// The number of tables that the last change added, at most; `None` if the plan has no history.
    pub fn new_tables(&self) -> Option<u64> {
        self.plan.as_ref().map(|plan| match plan {
            HistoryPlan::Foursomes(plan) => plan.new_tables,
            HistoryPlan::Tables(plan) => plan.new_tables,
        })
    }

    /// The plan, if it has a history.
    pub(super) fn plan(&self) -> Option<&HistoryPlan> {
        self.plan.as_ref()
    }
}
