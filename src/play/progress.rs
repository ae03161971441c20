//! Progress bars, and results in the order of their numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar shows that time passes.
const TICK: Duration = Duration::from_millis(250);

/// A progress bar on a terminal's standard error, and nothing elsewhere.
pub(crate) fn bar(length: usize, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let template = "{msg} {pos}/{len} [{bar:30}] {elapsed} gone, {eta} to go";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    let bar = ProgressBar::new(length as u64).with_style(style).with_message(what);
    bar.enable_steady_tick(TICK);
    bar
}

/// Puts numbered things that arrive in any order into the order of their numbers.
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

    /// Takes one in, and gives all those whose turn has come.
    pub(crate) fn push(&mut self, number: usize, thing: T) -> Vec<(usize, T)> {
        self.early.insert(number, thing);
        let mut due = Vec::new();
        while let Some(thing) = self.early.remove(&self.next) {
            due.push((self.next, thing));
            self.next += 1;
        }
        due
    }

    /// What still waits for its turn, in order.
    pub(crate) fn rest(self) -> impl Iterator<Item = (usize, T)> {
        self.early.into_iter()
    }
}
