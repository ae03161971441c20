//! How the field of a plan came to be: who began, and who came and left since.
//!
//! A plan of foursomes is a function of the seed and of this, and of nothing else. Whoever was ever
//! in it has a *place* for ever, numbered from 0 in the order of coming; places never change hands,
//! so tables that were planned for them mean the same in all later plans.

use serde::{Deserialize, Serialize};

use super::Bot;

/// Who began, and who came and left since.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lineage {
    /// How many began; places 0 to this are theirs.
    pub base: usize,
    /// What changed since, in order.
    pub steps: Vec<Step>,
}

/// What changed at once. The first of those who come take the tables over of those who leave at
/// the same time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The places of those who left, rising.
    pub left: Vec<Bot>,
    /// How many came.
    pub joined: usize,
}

impl Lineage {
    /// So many begin.
    pub fn new(base: usize) -> Self {
        Self { base, steps: Vec::new() }
    }

    /// How many were ever in it.
    pub fn places(&self) -> usize {
        self.base + self.steps.iter().map(|step| step.joined).sum::<usize>()
    }

    /// The places of those who are in it now, rising.
    pub fn present(&self) -> Vec<Bot> {
        let mut present: Vec<Bot> = (0..=Bot::MAX).take(self.places()).collect();
        let left = |place: &Bot| self.steps.iter().any(|step| step.left.contains(place));
        present.retain(|place| !left(place));
        present
    }

    /// The same as it was before its last steps, when there were so many.
    #[must_use]
    pub fn before(&self, steps: usize) -> Self {
        Self { base: self.base, steps: self.steps[..steps].to_vec() }
    }

    /// The same after one step more.
    #[must_use]
    pub fn after(&self, step: Step) -> Self {
        let mut steps = self.steps.clone();
        steps.push(step);
        Self { base: self.base, steps }
    }
}
