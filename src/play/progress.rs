//! Progress bars, and ordering of results that arrive out of order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar is redrawn.
const TICK_INTERVAL: Duration = Duration::from_millis(250);

/// A progress bar on standard error; hidden if standard error is not a terminal.
pub(crate) fn bar(length: usize, label: impl Into<Cow<'static, str>>) -> ProgressBar {
    let template = "{msg} {pos}/{len} [{bar:30}] {elapsed} elapsed, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    let bar = ProgressBar::new(length as u64).with_style(style).with_message(label);
    bar.enable_steady_tick(TICK_INTERVAL);
    bar
}

/// Sorts numbered items that arrive out of order.
#[derive(Debug)]
pub(crate) struct Reorder<T> {
    next: usize,
    early: BTreeMap<usize, T>,
}

impl<T> Reorder<T> {
    /// Starts at number `first`.
    pub(crate) fn new(first: usize) -> Self {
        Self { next: first, early: BTreeMap::new() }
    }

    /// Adds an item and returns the items that are next in order.
    pub(crate) fn push(&mut self, number: usize, item: T) -> Vec<(usize, T)> {
        self.early.insert(number, item);
        let mut ready = Vec::new();
        while let Some(item) = self.early.remove(&self.next) {
            ready.push((self.next, item));
            self.next += 1;
        }
        ready
    }

    /// The items that were not returned yet, in order.
    pub(crate) fn remaining(self) -> impl Iterator<Item = (usize, T)> {
        self.early.into_iter()
    }
}
