//! Deletes data that is no longer needed, in the background: deleted tournaments, expired records,
//! and packs of records that were never used.
//!
//! A tournament disappears for users with the commit that deletes it. Its data is removed in steps
//! that any coordinator can repeat: first its partitions, which hold nearly all of it, as tables;
//! then the other rows, a thousand at a time, so that no one else waits for them; then its packs;
//! last the files of bots that no match refers to, and the tournament itself.
//!
//! Expired records are dropped as tables, too, if their tournament has partitions: the disk space is
//! free at once, and no table is rewritten.
//!
//! An advisory lock ensures that one coordinator at a time does this. It uses a connection of its
//! own, which is closed in the end, so the lock is released in any case.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{Connection as _, Error, PgConnection, PgPool, Result};
use time::OffsetDateTime;
use tokio::sync::Notify;

use crate::database_clock::Clock;
use crate::db::{deleted_tournaments, partitions, record_objects, records};
use crate::queue::UNUSED_AFTER;
use crate::record_store::{RecordStore, StoreError};

/// The longest time between two rounds.
const ROUND_INTERVAL: Duration = Duration::from_secs(60);

/// Why data cannot be deleted yet.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] Error),
    /// The record store failed, or is not configured.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Where records are stored, and for how long.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The record store; without one, records are stored in the database.
    pub store: Option<RecordStore>,
    /// The retention time after the end of their tournament; without one, records stay.
    pub keep: Option<time::Duration>,
}

/// Deletes data that is no longer needed.
#[derive(Clone, Debug)]
pub struct Cleaner {
    pool: PgPool,
    records: Records,
    clock: Clock,
    wake: Arc<Notify>,
}

impl Cleaner {
    /// Cleans this database and its record store.
    pub fn new(pool: PgPool, records: Records, clock: Clock) -> Self {
        Self { pool, records, clock, wake: Arc::default() }
    }

    /// Starts a round soon, for instance after a tournament was deleted.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Runs rounds without end: regularly, and after [`Cleaner::wake`].
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "cannot delete unneeded data; retrying");
            }
            drop(tokio::time::timeout(ROUND_INTERVAL, self.wake.notified()).await);
        }
    }

    /// Deletes all data that is no longer needed, unless another coordinator is doing so.
    ///
    /// # Errors
    /// If the database fails, or the store while unused packs are removed. The next round continues
    /// there. Other failures of the store are logged and skipped.
    pub async fn round(&self) -> Result<(), CleanupError> {
        let Records { store, keep } = &self.records;
        if store.is_none()
            && keep.is_none()
            && deleted_tournaments::list(&self.pool).await?.is_empty()
        {
            return Ok(());
        }
        let mut connection = self.pool.acquire().await?.detach();
        if deleted_tournaments::claim(&mut connection).await? {
            deleted_tournaments::set_timeouts(&mut connection).await?;
            self.clean(&mut connection).await?;
            deleted_tournaments::release(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// Does the work of a round, under the lock.
    async fn clean(&self, connection: &mut PgConnection) -> Result<(), CleanupError> {
        let Records { store, keep } = &self.records;
        let deleted = deleted_tournaments::list(&mut *connection).await?;
        // Partitions first: they hold most of the data.
        for (tournament, name) in &deleted {
            drop_partitions(&mut *connection, *tournament, name).await?;
        }
        for (tournament, name) in &deleted {
            // A failure does not delay the other tournaments.
            if let Err(error) = finish(&mut *connection, store.as_ref(), *tournament, name).await {
                tracing::warn!(tournament = name, %error, "cannot delete a tournament's data yet");
            }
        }
        let now = self.clock.now();
        if let Some(store) = store {
            remove_unused_packs(&mut *connection, store, now - UNUSED_AFTER).await?;
        }
        let Some(keep) = keep else { return Ok(()) };
        for first in records::expired_partitions(&mut *connection, now - *keep).await? {
            // A partition that is locked is emptied in the next round.
            if let Err(error) = partitions::truncate_records(&mut *connection, first).await {
                tracing::warn!(partition = first, %error, "cannot delete expired records yet");
            }
        }
        for edition in records::old(&mut *connection, now - *keep).await? {
            match delete_records(&mut *connection, store.as_ref(), edition).await {
                Ok(()) => {
                    tracing::info!(%edition, "deleted expired records");
                }
                Err(CleanupError::Store(error)) => {
                    tracing::warn!(%edition, %error, "cannot delete expired records yet");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Deletes the records of an edition.
async fn delete_records(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    edition: EditionId,
) -> Result<(), CleanupError> {
    while records::delete_some(&mut *connection, edition).await? > 0 {}
    remove_packs(connection, store, edition).await
}

/// Drops the partitions of a tournament.
async fn drop_partitions(
    connection: &mut PgConnection,
    tournament: TournamentId,
    name: &str,
) -> Result<()> {
    for first in partitions::of_tournament(&mut *connection, tournament).await? {
        let began = Instant::now();
        partitions::drop_partitions(&mut *connection, first).await?;
        let ms = began.elapsed().as_millis();
        tracing::info!(tournament = name, partition = first, ms, "dropped a partition");
    }
    Ok(())
}

/// Deletes the data of a tournament outside its partitions, and the tournament.
async fn finish(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    tournament: TournamentId,
    name: &str,
) -> Result<(), CleanupError> {
    for edition in deleted_tournaments::editions(&mut *connection, tournament).await? {
        deleted_tournaments::clear_edition(&mut *connection, edition).await?;
        remove_packs(&mut *connection, store, edition).await?;
    }
    let mut after = Vec::new();
    while let Some(last) = deleted_tournaments::clear_snapshots(&mut *connection, &after).await? {
        after = last;
    }
    deleted_tournaments::finish(connection, tournament).await?;
    tracing::info!(tournament = name, "deleted a tournament's data");
    Ok(())
}

/// Removes the packs of an edition that has no records.
async fn remove_packs(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    edition: EditionId,
) -> Result<(), CleanupError> {
    loop {
        let some = record_objects::of_edition(&mut *connection, edition).await?;
        if some.is_empty() {
            return Ok(());
        }
        let store = store.ok_or(StoreError::NotConfigured)?;
        for pack in &some {
            store.remove(edition, *pack).await?;
        }
        record_objects::delete(&mut *connection, &some).await?;
    }
}

/// Removes unused packs that were announced before a time.
async fn remove_unused_packs(
    connection: &mut PgConnection,
    store: &RecordStore,
    before: OffsetDateTime,
) -> Result<(), CleanupError> {
    loop {
        // The rows are locked. A transaction that wants to use one of these packs afterwards finds
        // it removed, and the records are stored again.
        let mut transaction = connection.begin().await?;
        let some = record_objects::find_unused(&mut *transaction, before).await?;
        if some.is_empty() {
            return Ok(transaction.rollback().await?);
        }
        for (edition, pack) in &some {
            store.remove(*edition, *pack).await?;
        }
        let some: Vec<_> = some.into_iter().map(|(_, pack)| pack).collect();
        record_objects::delete(&mut transaction, &some).await?;
        transaction.commit().await?;
    }
}
