//! Files that bots left for their next matches, in the assignments of these matches. Their memory
//! is limited, in total and for each worker stream, so that a worker that does not read its stream
//! does not delay other workers.

use std::collections::HashMap;
use std::sync::Arc;

use arbiter_proto::ids::MatchNumber;
use sqlx::{PgPool, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::db::bot_state;
use crate::db::matches::Match;
use crate::queue::{MAX_FILES_LEN, Work};

/// Maximum number of bytes for all workers.
const MAX_TOTAL: usize = 64 << 20;
/// Maximum number of bytes for one stream: two matches of four seats with the largest files.
const MAX_PER_STREAM: usize = 8 << 20;
/// The unit in which memory is reserved, in bytes.
const UNIT: usize = 1 << 10;

/// The memory budget for files: one for all streams together, and one for this stream.
#[derive(Clone, Debug)]
pub struct StateBudget {
    all: Arc<Semaphore>,
    stream: Arc<Semaphore>,
}

impl Default for StateBudget {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_TOTAL / UNIT)), stream: stream_budget() }
    }
}

fn stream_budget() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MAX_PER_STREAM / UNIT))
}

impl StateBudget {
    /// The budget of another stream, with the same total.
    #[must_use]
    pub fn for_stream(&self) -> Self {
        Self { all: Arc::clone(&self.all), stream: stream_budget() }
    }

    /// Waits until half of this stream's memory is free, which is enough for a match of four seats.
    /// A worker that does not read its stream must lease no more lots.
    pub(crate) async fn wait(&self) {
        // The semaphore is never closed, so this cannot fail.
        drop(self.stream.acquire_many(units(MAX_PER_STREAM / 2)).await);
    }

    /// Reserves this many bytes, or the whole budget of the stream if that is less.
    async fn reserve(&self, bytes: usize) -> Option<StateReservation> {
        let units = units(bytes);
        // The stream's budget is reserved first, so that a full stream reserves nothing of the
        // total.
        let stream = Arc::clone(&self.stream).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(StateReservation([stream, all]))
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.min(MAX_PER_STREAM).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Memory that is reserved until this is dropped.
#[derive(Debug)]
pub struct StateReservation([OwnedSemaphorePermit; 2]);

impl StateReservation {
    /// Frees all but this many bytes.
    fn shrink(&mut self, bytes: usize) {
        let units = units(bytes) as usize;
        for permit in &mut self.0 {
            drop(permit.split(permit.num_permits().saturating_sub(units)));
        }
    }
}

/// The files with which seats begin: compressed tar archives, by match and seat (from 1).
#[derive(Debug, Default)]
pub(super) struct Files {
    archives: HashMap<(MatchNumber, i32), Vec<u8>>,
    /// Their reserved memory, if there are any.
    pub(super) memory: Option<StateReservation>,
}

impl Files {
    /// Whether any seat of a lot begins with files.
    pub(super) fn are_needed(work: &Work) -> bool {
        seats_with_files(&work.matches).next().is_some()
    }

    /// Reserves memory, and reads the files with which the seats of a lot begin.
    pub(super) async fn read(pool: &PgPool, work: &Work, memory: &StateBudget) -> Result<Self> {
        let seats = seats_with_files(&work.matches).count();
        if seats == 0 {
            return Ok(Self::default());
        }
        // The sizes are unknown before the files are read.
        let mut reservation = memory.reserve(seats * MAX_FILES_LEN).await;
        let lease = work.lot.lease;
        let tournament = lease.shadow().map_or(lease.lot.tournament, |id| id.tournament);
        let rows = bot_state::of_lot(pool, tournament, work.lot).await?;
        if let Some(reservation) = &mut reservation {
            reservation.shrink(rows.iter().map(|row| row.bytes.len()).sum());
        }
        let by_seat = rows.into_iter().map(|row| ((row.number, row.seat), row.bytes));
        Ok(Self { archives: by_seat.collect(), memory: reservation })
    }

    /// The archive of a seat (from 1); empty if its bot left no files.
    pub(super) fn take(&mut self, number: MatchNumber, seat: i32) -> Vec<u8> {
        self.archives.remove(&(number, seat)).unwrap_or_default()
    }
}

/// For each seat that begins with files, the match that left them.
fn seats_with_files(matches: &[Match]) -> impl Iterator<Item = i64> {
    matches.iter().filter_map(|planned| planned.state_from.as_ref()).flatten().flatten().copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_stalled_stream_leaves_memory_to_others() {
        let slow = StateBudget::default();
        let wait = Duration::ZERO;
        let mut reservations =
            [slow.reserve(4 << 20).await.unwrap(), slow.reserve(4 << 20).await.unwrap()];
        assert!(timeout(wait, slow.reserve(1)).await.is_err());
        let other = slow.for_stream();
        let reserved = timeout(wait, other.reserve(4 << 20)).await.unwrap();
        reservations[0].shrink(1000);
        drop(reserved);
        assert!(timeout(wait, slow.reserve(3 << 20)).await.is_ok());
    }

    #[tokio::test]
    async fn all_streams_together_are_limited() {
        let budget = StateBudget::default();
        let wait = Duration::ZERO;
        let mut reservations = Vec::new();
        for _ in 0..MAX_TOTAL / MAX_PER_STREAM {
            reservations.push(budget.for_stream().reserve(usize::MAX).await.unwrap());
        }
        assert!(timeout(wait, budget.for_stream().reserve(1)).await.is_err());
        reservations.pop();
        assert!(timeout(wait, budget.for_stream().reserve(1)).await.is_ok());
    }
}
