//! The history of a plan's bots: the initial number, and the bots that joined and left later.
//!
//! A plan of tables depends only on the seed and on this history. Each bot that ever took part
//! has a *place*: a number from 0, in the order of joining. Places are never reused, so they have
//! the same meaning in all later plans.

use core::num::NonZeroU64;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::Bot;

/// The initial number of bots, and the later changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RosterHistory {
    /// The initial number of bots. They have the places from 0.
    pub base: usize,
    /// The later changes, in order.
    pub steps: Vec<RosterChange>,
    /// The number of tables of four for the first bots, if the schedule requests fewer. Histories
    /// of former releases lack it: their plans had the requested number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_tables: Option<NonZeroU64>,
}

/// Bots that left and joined at the same time. The first new bots get the tables of the bots that
/// left.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RosterChange {
    /// The places of the bots that left, in ascending order.
    pub left: Vec<Bot>,
    /// The number of bots that joined.
    pub joined: usize,
}

impl RosterHistory {
    /// A history that begins with `base` bots and a plan that has the requested number of tables.
    /// For a new plan, see [`Schedule::new_history`](super::Schedule::new_history).
    pub fn new(base: usize) -> Self {
        Self { base, steps: Vec::new(), first_tables: None }
    }

    /// The number of places: one for each bot that ever took part.
    pub fn places(&self) -> usize {
        self.base + self.steps.iter().map(|step| step.joined).sum::<usize>()
    }

    /// The places of the present bots, in ascending order.
    pub fn present(&self) -> Vec<Bot> {
        let left: HashSet<_> = self.steps.iter().flat_map(|step| &step.left).collect();
        (0..=Bot::MAX).take(self.places()).filter(|place| !left.contains(place)).collect()
    }

    /// The history with only its first `steps` changes.
    #[must_use]
    pub fn before(&self, steps: usize) -> Self {
        Self { steps: self.steps[..steps].to_vec(), ..*self }
    }

    /// The history with one more change.
    #[must_use]
    pub fn after(&self, step: RosterChange) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { steps, ..*self }
    }
}
