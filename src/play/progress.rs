//! Progress bars, and ordering of results that arrive out of order.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};

/// How often a bar is redrawn.
const TICK_INTERVAL: Duration = Duration::from_millis(250);

/// A progress bar on standard error; hidden if standard error is not a terminal.
pub(crate) fn bar(length: usize, label: impl Into<Cow<'static, str>>) -> ProgressBar {
    let template = "{msg} {pos}/{len} [{bar:20}] {elapsed} elapsed{pace}";
    let style = ProgressStyle::with_template(template).expect("the template is well formed");
    let style = style.with_key("pace", write_pace);
    let bar = ProgressBar::new(length as u64).with_style(style).with_message(label);
    bar.enable_steady_tick(TICK_INTERVAL);
    bar
}

/// Writes the rate and the time left, once they are known.
fn write_pace(state: &ProgressState, text: &mut dyn fmt::Write) {
    let rate = state.per_sec();
    if state.pos() > 0 && rate > 0.0 {
        let left = HumanDuration(state.eta());
        write!(text, ", {}, {left:#} left", rate_text(rate)).expect("a string takes any text");
    }
}

/// A rate per second as text, with few digits.
fn rate_text(rate: f64) -> String {
    match rate {
        10.0.. => format!("{rate:.0}/s"),
        1.0.. => format!("{rate:.1}/s"),
        _ => format!("{:.1}/min", 60.0 * rate),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_few_digits() {
        let texts = [1234.56, 10.0, 9.96, 1.0, 0.25].map(rate_text);
        assert_eq!(texts, ["1235/s", "10/s", "10.0/s", "1.0/s", "15.0/min"]);
    }
}
