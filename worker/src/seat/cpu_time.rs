//! Processor time between replies, from two clocks.
//!
//! The clock of a bot's leading processes is fast to read. The clock of its whole process tree is
//! slow. They differ by rounding. The worker charges a bot the difference between successive
//! readings. So the sum must never decrease, even if the readings come from different clocks.

use arbiter_games::Micros;

/// The processor time of a seat so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuCounter {
    total: Micros,
    /// Processor time of all other processes in the tree, at the last reading of the tree.
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
        let difference = total - self.total;
        self.total = total;
        difference
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
        assert_eq!(advance(150, Some(400)), 300, "a reading of the tree includes children");
        assert_eq!(advance(160, None), 10, "later readings still include them");
        assert_eq!(advance(170, Some(409)), 0, "the clock of the tree may be behind");
        assert_eq!(advance(175, Some(420)), 10, "the clock of the tree is ahead again");
        assert_eq!(advance(0, Some(425)), 5, "the leading process has ended");
    }
}
