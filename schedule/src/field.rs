//! Who is planned for.

use std::sync::Arc;

use super::Owner;
use super::foursomes::{Grown, GrownTables};

/// Who is planned for, and what of a plan does not follow from their number. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Field {
    bots: usize,
    grown: Option<Arc<Grown>>,
}

impl From<usize> for Field {
    /// So many bots, of whom nothing else is known.
    fn from(bots: usize) -> Self {
        Self { bots, grown: None }
    }
}

impl From<Grown> for Field {
    /// The bots of a plan that has grown.
    fn from(grown: Grown) -> Self {
        Self { bots: grown.bots, grown: Some(Arc::new(grown)) }
    }
}

impl Field {
    /// How many bots there are.
    pub fn bots(&self) -> usize {
        self.bots
    }

    /// Whose the bots are, if owners are kept apart; else empty.
    pub fn owners(&self) -> &[Option<Owner>] {
        self.grown.as_ref().map_or(&[], |grown| &grown.owners)
    }

    /// How many matches a plan that has grown took over none of in its last step.
    pub fn news(&self) -> Option<u64> {
        self.grown.as_ref().map(|grown| grown.news)
    }

    /// The tables of a plan that has grown.
    pub(super) fn tables(&self) -> Option<GrownTables> {
        self.grown.as_ref().map(Grown::tables)
    }
}
