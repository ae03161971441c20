//! Waiting for something that is about to happen and that no descriptor tells.

use std::thread;
use std::time::Duration;

use crate::fault::Fault;

/// The first pause between two looks; the next ones are longer and longer, ...
const FIRST: Duration = Duration::from_micros(5);

/// ... up to this.
const LONGEST: Duration = Duration::from_micros(200);

/// Looks until `is_so`, with pauses of `limit` in all: whether it became so.
///
/// It is the pauses that are counted and not the time that passes: a machine that stands still, or
/// a worker that does not get its turn, is not held against anybody.
///
/// # Errors
/// Those of `is_so`.
pub(super) fn wait_until(
    limit: Duration,
    mut is_so: impl FnMut() -> Result<bool, Fault>,
) -> Result<bool, Fault> {
    let (mut pause, mut paused) = (FIRST, Duration::ZERO);
    while !is_so()? {
        if paused >= limit {
            return Ok(false);
        }
        thread::sleep(pause);
        paused += pause;
        pause = (pause * 2).min(LONGEST);
    }
    Ok(true)
}
