//! On which terms a bot takes its seat.

pub use arbiter_proto::limits::{Bytes, BytesError, Limits, Ponder};

/// On which terms a bot takes its seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// What it may use.
    pub limits: Limits,
    /// What it may do while it owes nothing.
    pub ponder: Ponder,
    /// The processors it runs on, by number; any if there are none.
    pub cores: Vec<usize>,
}

impl Terms {
    /// The terms of seat number `seat` (from 0) of a match whose slot has these processors: a bot
    /// runs on as many of them as it may use, neighbours on others where there are enough.
    pub(crate) fn at_seat(&self, seat: usize) -> Self {
        let most = self.limits.cpus.max(1);
        let from = self.cores.iter().cycle().skip(seat * most);
        let cores = from.take(most.min(self.cores.len())).copied().collect();
        Self { cores, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_runs_on_no_more_processors_than_it_may() {
        let cores = |cpus, cores: &[usize], seat| {
            let limits = Limits { cpus, ..Limits::OFFICIAL };
            Terms { limits, cores: cores.to_vec(), ..Terms::default() }.at_seat(seat).cores
        };
        assert_eq!([0, 1, 2].map(|seat| cores(1, &[4, 6], seat)), [[4], [6], [4]]);
        assert_eq!([0, 1].map(|seat| cores(2, &[1, 3, 5], seat)), [[1, 3], [5, 1]]);
        assert_eq!(cores(8, &[1, 3], 1), [1, 3]);
        assert_eq!(cores(1, &[], 1), [0; 0], "any where nothing is promised");
    }
}
