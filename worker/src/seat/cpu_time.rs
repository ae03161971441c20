//! Processor time between replies, from two clocks.
//!
//! The clock of a bot's leading processes is cheap to read; that of its whole process tree is slow.
//! They differ by rounding. A bot is charged the difference between successive readings, so the sum
//! must never decrease, whichever clock it comes from.

use arbiter_games::Micros;

/// The processor time of a seat so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuCounter {
    total: Micros,
    /// Last known part used by the tree beyond its leading processes.
    children: Micros,
}

impl CpuCounter {
    /// Adds a reading of the leading processes, and perhaps of the whole tree. Returns the time
    /// since the previous reading.
    pub(super) fn advance(&mut self, leaders: Micros, tree: Option<Micros>) -> Micros {
        if let Some(tree) = tree {
            self.children = (tree - leaders).max(Micros::ZERO);
        }
        let total = tree.unwrap_or(leaders + self.children).max(self.total);
        let since = total - self.total;
        self.total = total;
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_decreases() {
        let mut counter = CpuCounter::default();
        let mut advance =
            |leaders, tree: Option<i64>| counter.advance(Micros(leaders), tree.map(Micros)).0;
        assert_eq!(advance(100, None), 100);
        assert_eq!(advance(150, Some(400)), 300, "children are found");
        assert_eq!(advance(160, None), 10, "and stay counted");
        assert_eq!(advance(170, Some(409)), 0, "a tree's clock that lags behind");
        assert_eq!(advance(175, Some(420)), 10, "is caught up with");
        assert_eq!(advance(0, Some(425)), 5, "also when the leader is gone");
    }
}
