//! What bots left for their next matches, on its way to the workers that play these. All of it that
//! is in memory at a moment has a bound, and what goes over one stream has a smaller one: a worker
//! that takes nothing of what it is sent holds up no other.

use std::collections::HashMap;
use std::sync::Arc;

use arbiter_proto::ids::{EditionId, MatchNumber};
use sqlx::{PgPool, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::db::bot_state;
use crate::db::matches::Match;
use crate::queue::{MOST_FILES, Work};

/// Bytes on their way to all workers.
const OF_ALL: usize = 64 << 20;
/// Bytes on their way over one stream: two matches of four whose bots leave as much as they may.
const OF_STREAM: usize = 8 << 20;
/// The unit in which memory is reserved, in bytes.
const UNIT: usize = 1 << 10;

/// From what the memory of files is taken.
#[derive(Clone, Debug)]
pub struct StateBudget {
    all: Arc<Semaphore>,
    stream: Arc<Semaphore>,
}

impl Default for StateBudget {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(OF_ALL / UNIT)), stream: of_stream() }
    }
}

fn of_stream() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(OF_STREAM / UNIT))
}

impl StateBudget {
    /// The same memory for another stream.
    #[must_use]
    pub fn for_stream(&self) -> Self {
        Self { all: Arc::clone(&self.all), stream: of_stream() }
    }

    /// Waits until half of the memory of this stream is free, which is enough for a match of four: who
    /// takes nothing of what was sent is to lease nothing more.
    pub(crate) async fn wait(&self) {
        // It is never closed.
        drop(self.stream.acquire_many(units(OF_STREAM / 2)).await);
    }

    /// Waits for so many bytes, or for all of a stream's, if that is less.
    async fn take(&self, bytes: usize) -> Option<StateReservation> {
        let units = units(bytes);
        // The stream's first, so that only those who may have it wait for what all share.
        let stream = Arc::clone(&self.stream).acquire_many_owned(units).await.ok()?;
        let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
        Some(StateReservation([stream, all]))
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.min(OF_STREAM).div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Memory that is taken until this is dropped.
#[derive(Debug)]
pub struct StateReservation([OwnedSemaphorePermit; 2]);

impl StateReservation {
    /// Gives back what is more than so many bytes.
    fn shrink(&mut self, bytes: usize) {
        let keep = units(bytes) as usize;
        for permit in &mut self.0 {
            drop(permit.split(permit.num_permits().saturating_sub(keep)));
        }
    }
}

/// What seats begin with: compressed tar archives, by match and seat, from 1.
#[derive(Debug, Default)]
pub(super) struct Files {
    archives: HashMap<(MatchNumber, i32), Vec<u8>>,
    /// Where there are any.
    pub(super) memory: Option<StateReservation>,
}

impl Files {
    /// Whether any seat of a lot begins with files.
    pub(super) fn are_needed(work: &Work) -> bool {
        seats_with_files(&work.matches).next().is_some()
    }

    /// Reads what the seats of a lot begin with, once there is memory for it.
    pub(super) async fn read(
        pool: &PgPool,
        edition: EditionId,
        work: &Work,
        memory: &StateBudget,
    ) -> Result<Self> {
        let seats = seats_with_files(&work.matches).count();
        if seats == 0 {
            return Ok(Self::default());
        }
        // Their lengths are not known before they are read.
        let mut taken = memory.take(seats * MOST_FILES).await;
        let begins = bot_state::of_lot(pool, edition, work.lot).await?;
        if let Some(taken) = &mut taken {
            taken.shrink(begins.iter().map(|begin| begin.bytes.len()).sum());
        }
        let by_seat = begins.into_iter().map(|begin| ((begin.number, begin.seat), begin.bytes));
        Ok(Self { archives: by_seat.collect(), memory: taken })
    }

    /// What this seat, from 1, begins with: nothing, if its bot left nothing.
    pub(super) fn take(&mut self, number: MatchNumber, seat: i32) -> Vec<u8> {
        self.archives.remove(&(number, seat)).unwrap_or_default()
    }
}

/// The matches whose files seats begin with, one for each such seat.
fn seats_with_files(matches: &[Match]) -> impl Iterator<Item = i64> {
    matches.iter().filter_map(|planned| planned.files_from.as_ref()).flatten().flatten().copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_stream_that_takes_nothing_leaves_memory_to_others() {
        let (slow, wait) = (StateBudget::default(), Duration::ZERO);
        let mut held = [slow.take(4 << 20).await.unwrap(), slow.take(4 << 20).await.unwrap()];
        assert!(timeout(wait, slow.take(1)).await.is_err());
        let other = slow.for_stream();
        let taken = timeout(wait, other.take(4 << 20)).await.unwrap();
        held[0].shrink(1000);
        drop(taken);
        assert!(timeout(wait, slow.take(3 << 20)).await.is_ok());
    }

    #[tokio::test]
    async fn all_streams_together_have_a_bound() {
        let (memory, wait) = (StateBudget::default(), Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..OF_ALL / OF_STREAM {
            held.push(memory.for_stream().take(usize::MAX).await.unwrap());
        }
        assert!(timeout(wait, memory.for_stream().take(1)).await.is_err());
        held.pop();
        assert!(timeout(wait, memory.for_stream().take(1)).await.is_ok());
    }
}
