//! On which terms a bot takes its seat.

use std::time::Duration;

pub use arbiter_proto::limits::{Bytes, BytesError, Limits, Ponder};

/// How long what a bot runs may take to stop or to die before that is the bot's fault: it then was
/// in the kernel all the time. Sixty threads on one processor that all have to take their turn once
/// more need a tenth of it.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The addresses that one process may map, in bytes: room for two memories of WebAssembly, each
/// of which reserves ten gigabytes, and more than any other runtime asks for.
///
/// What is mapped is walked through by calls of the kernel that nothing interrupts, not even a kill:
/// `/proc/self/smaps` needs 75 ns a page. Memory alone does not bound that, since one page can be
/// mapped a million times.
pub(super) const ADDRESSES: u64 = 24 << 30;

/// On which terms a bot takes its seat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JailConfig {
    /// What it may use.
    pub limits: Limits,
    /// What it may do while it owes nothing.
    pub ponder: Ponder,
    /// The processors it runs on, by number; any if there are none.
    pub cores: Vec<usize>,
}

impl JailConfig {
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
            JailConfig { limits, cores: cores.to_vec(), ..JailConfig::default() }
                .at_seat(seat)
                .cores
        };
        assert_eq!([0, 1, 2].map(|seat| cores(1, &[4, 6], seat)), [[4], [6], [4]]);
        assert_eq!([0, 1].map(|seat| cores(2, &[1, 3, 5], seat)), [[1, 3], [5, 1]]);
        assert_eq!(cores(8, &[1, 3], 1), [1, 3]);
        assert_eq!(cores(1, &[], 1), [0; 0], "any where nothing is promised");
    }
}
