//! Deletes data that is no longer needed, in the background: deleted tournaments, expired records,
//! and packs of records that were never used.
//!
//! A tournament disappears for users with the commit that deletes it. Its data is removed in steps
//! that any coordinator can repeat:
//!
//! 1. Drop its partitions, which contain nearly all data.
//! 2. Delete the other rows, a thousand at a time, so that other transactions do not wait long.
//! 3. Remove its packs.
//! 4. Delete unused bot state, and the row of the tournament.
//!
//! Expired records are dropped as tables, too, if their tournament has partitions: the disk space
//! is free at once, and no table is rewritten.
//!
//! An advisory lock ensures that only one coordinator at a time does this. The lock has a separate
//! connection, which is closed at the end, so the lock is always released.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_proto::ids::TournamentId;
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
    /// The record store. With `None`, records are stored in the database.
    pub store: Option<RecordStore>,
    /// How long records are kept after the end of their tournament. With `None`, they are never
    /// deleted.
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
    /// If the database fails, or if the store fails to remove unused packs. The next round
    /// continues the work. Other failures of the store are logged, and the round continues.
    pub async fn round(&self) -> Result<(), CleanupError> {
        let Records { store, keep } = &self.records;
        if store.is_none()
            && keep.is_none()
            && deleted_tournaments::list(&self.pool).await?.is_empty()
        {
            return Ok(());
        }
        let mut connection = self.pool.acquire().await?.detach();
        if deleted_tournaments::try_lock(&mut connection).await? {
            deleted_tournaments::set_timeouts(&mut connection).await?;
            self.clean(&mut connection).await?;
            deleted_tournaments::unlock(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// Does the work of a round while this coordinator has the lock.
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
        for tournament in records::expired_partitions(&mut *connection, now - *keep).await? {
            // If the partition is locked, the next round truncates it.
            if let Err(error) = partitions::truncate_records(&mut *connection, tournament).await {
                tracing::warn!(%tournament, %error, "cannot delete expired records yet");
            }
        }
        for tournament in records::expired(&mut *connection, now - *keep).await? {
            match delete_records(&mut *connection, store.as_ref(), tournament).await {
                Ok(()) => {
                    tracing::info!(%tournament, "deleted expired records");
                }
                Err(CleanupError::Store(error)) => {
                    tracing::warn!(%tournament, %error, "cannot delete expired records yet");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Deletes the records of a tournament.
async fn delete_records(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    tournament: TournamentId,
) -> Result<(), CleanupError> {
    while records::delete_some(&mut *connection, tournament).await? > 0 {}
    remove_packs(connection, store, tournament).await
}

/// Drops the partitions of a tournament, if it has any.
async fn drop_partitions(
    connection: &mut PgConnection,
    tournament: TournamentId,
    name: &str,
) -> Result<()> {
    if partitions::exist(&mut *connection, tournament).await? {
        let started_at = Instant::now();
        partitions::drop_partitions(&mut *connection, tournament).await?;
        let ms = started_at.elapsed().as_millis();
        tracing::info!(tournament = name, ms, "dropped the partitions of a tournament");
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
    deleted_tournaments::delete_rows(&mut *connection, tournament).await?;
    remove_packs(&mut *connection, store, tournament).await?;
    let mut after = Vec::new();
    while let Some(last) = deleted_tournaments::delete_snapshots(&mut *connection, &after).await? {
        after = last;
    }
    deleted_tournaments::finish(connection, tournament).await?;
    tracing::info!(tournament = name, "deleted a tournament's data");
    Ok(())
}

/// Removes the packs of a tournament that has no records.
async fn remove_packs(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    tournament: TournamentId,
) -> Result<(), CleanupError> {
    loop {
        let packs = record_objects::of_tournament(&mut *connection, tournament).await?;
        if packs.is_empty() {
            return Ok(());
        }
        let store = store.ok_or(StoreError::NotConfigured)?;
        for pack in &packs {
            store.remove(tournament, *pack).await?;
        }
        record_objects::delete(&mut *connection, &packs).await?;
    }
}

/// Removes unused packs that were announced before this time.
async fn remove_unused_packs(
    connection: &mut PgConnection,
    store: &RecordStore,
    before: OffsetDateTime,
) -> Result<(), CleanupError> {
    loop {
        // The rows are locked. If another transaction wants to use one of these packs, it waits,
        // finds the pack removed, and fails. Then the records are uploaded again.
        let mut transaction = connection.begin().await?;
        let packs = record_objects::find_unused(&mut *transaction, before).await?;
        if packs.is_empty() {
            return Ok(transaction.rollback().await?);
        }
        for (tournament, pack) in &packs {
            store.remove(*tournament, *pack).await?;
        }
        let ids: Vec<_> = packs.into_iter().map(|(_, pack)| pack).collect();
        record_objects::delete(&mut transaction, &ids).await?;
        transaction.commit().await?;
    }
}
