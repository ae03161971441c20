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
    /// Tables of four of the first bots: the number of meetings of each pair in whole designs, and
    /// the number of tables beyond them.
    FirstFoursomes(u32, u64),
    Foursomes(Arc<IncrementalPlan>),
    Tables(Arc<TablePlan>),
}

impl From<usize> for Participants {
    /// This many bots, without a history.
    fn from(bots: usize) -> Self {
        Self { bots, plan: None }
    }
}

impl Participants {
    /// The first bots of a history of foursomes, and the [`HistoryPlan::FirstFoursomes`].
    pub(super) fn first(bots: usize, (meetings, remainder): (u32, u64)) -> Self {
        Self { bots, plan: Some(HistoryPlan::FirstFoursomes(meetings, remainder)) }
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
            Some(HistoryPlan::FirstFoursomes(..) | HistoryPlan::Tables(_)) | None => &[],
        }
    }

    /// The number of tables that the last change added, at most; `None` if the plan has no history.
    pub fn new_tables(&self) -> Option<u64> {
        match self.plan.as_ref()? {
            HistoryPlan::FirstFoursomes(..) => None,
            HistoryPlan::Foursomes(plan) => Some(plan.new_tables),
            HistoryPlan::Tables(plan) => Some(plan.new_tables),
        }
    }

    /// The plan, if it has a history.
    pub(super) fn plan(&self) -> Option<&HistoryPlan> {
        self.plan.as_ref()
    }
}
