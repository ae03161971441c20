//! The configuration of a jail: limits, pondering and processors.

use std::time::Duration;

pub use arbiter_proto::limits::{Bytes, BytesError, Limits, Ponder};

/// How long a bot's processes may take to stop or to die before the bot forfeits. Processes that
/// take longer were in the kernel all the time: sixty threads on one processor, each scheduled once
/// more, need a tenth of this time.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// The limit of a process's address space, in bytes: room for two WebAssembly memories, which
/// reserve ten gigabytes each, and more than any other runtime needs.
///
/// Some system calls visit all mappings and cannot be interrupted, not even by a kill:
/// `/proc/self/smaps` takes 75 ns per page. The memory limit does not limit that, because one page
/// can be mapped a million times.
pub(super) const MAX_ADDRESS_SPACE: u64 = 24 << 30;

/// The configuration of a jail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JailConfig {
    /// The resources that the bot may use.
    pub limits: Limits,
    /// Whether the bot may think on its opponents' time.
    pub ponder: Ponder,
    /// The numbers of the processors that it runs on; empty for any.
    pub cores: Vec<usize>,
}

impl JailConfig {
    /// The configuration for seat number `seat` (from 0) of a match whose slot has these
    /// processors. A bot gets as many processors as its limit allows. Other seats get different
    /// processors if the slot has enough.
    pub(crate) fn for_seat(&self, seat: usize) -> Self {
        let count = self.limits.cpus.max(1);
        let first = self.cores.iter().cycle().skip(seat * count);
        let cores = first.take(count.min(self.cores.len())).copied().collect();
        Self { cores, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_runs_on_no_more_processors_than_its_limit() {
        let cores = |cpus, cores: &[usize], seat| {
            let limits = Limits { cpus, ..Limits::OFFICIAL };
            JailConfig { limits, cores: cores.to_vec(), ..JailConfig::default() }
                .for_seat(seat)
                .cores
        };
        assert_eq!([0, 1, 2].map(|seat| cores(1, &[4, 6], seat)), [[4], [6], [4]]);
        assert_eq!([0, 1].map(|seat| cores(2, &[1, 3, 5], seat)), [[1, 3], [5, 1]]);
        assert_eq!(cores(8, &[1, 3], 1), [1, 3]);
        assert_eq!(cores(1, &[], 1), [0; 0], "any processor if the slot has none");
    }
}
