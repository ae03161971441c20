//! The history of a plan's bots: how many began, and which joined and left since.
//!
//! A plan of foursomes is a function of the seed and of this history alone. Each bot that ever took
//! part keeps its *place*: a number from 0, in the order of joining. Places are never reused, so the
//! tables planned for them mean the same in all later plans.

use serde::{Deserialize, Serialize};

use super::Bot;

/// How many bots began, and which joined and left since.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RosterHistory {
    /// How many bots began. They have the places from 0.
    pub base: usize,
    /// The changes since, in order.
    pub steps: Vec<RosterChange>,
}

/// Bots that left and joined at the same time. The first that join take over the tables of those
/// that leave.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RosterChange {
    /// The places of the bots that left, rising.
    pub left: Vec<Bot>,
    /// How many bots joined.
    pub joined: usize,
}

impl RosterHistory {
    /// A history that begins with `base` bots.
    pub fn new(base: usize) -> Self {
        Self { base, steps: Vec::new() }
    }

    /// How many places there are: all bots that ever took part.
    pub fn places(&self) -> usize {
        self.base + self.steps.iter().map(|step| step.joined).sum::<usize>()
    }

    /// The places of the bots that take part now, rising.
    pub fn present(&self) -> Vec<Bot> {
        let mut present: Vec<Bot> = (0..=Bot::MAX).take(self.places()).collect();
        let left = |place: &Bot| self.steps.iter().any(|step| step.left.contains(place));
        present.retain(|place| !left(place));
        present
    }

    /// The history up to its first `steps` changes.
    #[must_use]
    pub fn before(&self, steps: usize) -> Self {
        Self { base: self.base, steps: self.steps[..steps].to_vec() }
    }

    /// The history with one more change.
    #[must_use]
    pub fn after(&self, step: RosterChange) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { base: self.base, steps }
    }
}
