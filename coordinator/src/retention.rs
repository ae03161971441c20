//! What nobody needs any more is cleared away in the background: tournaments that were dropped,
//! records that were kept for long enough, packs of records that nobody came to use.
//!
//! A tournament that is dropped is gone for everybody with the commit that says so. What it leaves
//! goes in steps, each of which can be begun again by anybody: its shelves, which are nearly all of
//! it, as tables; the rest row by row, a thousand at a time, so that nobody waits and cleaning keeps
//! up; its packs; at last what bots left and no match names any more, and the tournament itself.
//!
//! Records that were kept for long enough go as a whole as well, wherever their tournament has a shelf:
//! the file system has the room at once, and no table has to be rewritten.
//!
//! One coordinator at a time clears away, whoever has the lock. It works on a connection of its own,
//! which is closed in the end: however that comes, the lock is free then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arbiter_proto::ids::{EditionId, TournamentId};
use sqlx::{Connection as _, Error, PgConnection, PgPool, Result};
use time::OffsetDateTime;
use tokio::sync::Notify;

use crate::database_clock::Clock;
use crate::db::{deleted_tournaments, partitions, record_objects, records};
use crate::queue::FORGOTTEN;
use crate::record_store::{RecordStore, StoreError};

/// How often it is looked whether something is to be cleared away, although nobody said so.
const ROUND: Duration = Duration::from_secs(60);

/// Why something is not cleared away yet.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    /// The database failed.
    #[error("the database failed: {0}")]
    Database(#[from] Error),
    /// The store of records failed, or is not named here.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// What becomes of records.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Where they are kept, if not in the database.
    pub store: Option<RecordStore>,
    /// How long after the end of their tournament, if not for ever.
    pub keep: Option<time::Duration>,
}

/// Clears away, and is told when there is something.
#[derive(Clone, Debug)]
pub struct Cleaner {
    pool: PgPool,
    records: Records,
    clock: Clock,
    due: Arc<Notify>,
}

impl Cleaner {
    /// Clears away in this database, and in the store of its records.
    pub fn new(pool: PgPool, records: Records, clock: Clock) -> Self {
        Self { pool, records, clock, due: Arc::default() }
    }

    /// Something was dropped.
    pub fn due(&self) {
        self.due.notify_one();
    }

    /// Clears away whatever there is, now and whenever something is due.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "cannot clear away what nobody needs; trying again");
            }
            // Whether it was said or not, there may be something.
            drop(tokio::time::timeout(ROUND, self.due.notified()).await);
        }
    }

    /// Clears away whatever there is, unless somebody else does.
    ///
    /// # Errors
    /// If the database fails, or the store where packs are to be forgotten; the next round goes on
    /// where this one stopped. What else the store fails at is told, and holds up no other.
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
            self.clear(&mut connection).await?;
            deleted_tournaments::release(&mut connection).await?;
        }
        Ok(connection.close().await?)
    }

    /// Clears away as the only one.
    async fn clear(&self, connection: &mut PgConnection) -> Result<(), CleanupError> {
        let Records { store, keep } = &self.records;
        let gone = deleted_tournaments::list(&mut *connection).await?;
        // Shelves first: they are the most.
        for (tournament, name) in &gone {
            take_down(&mut *connection, *tournament, name).await?;
        }
        for (tournament, name) in &gone {
            // It holds up no other.
            if let Err(error) = finish(&mut *connection, store.as_ref(), *tournament, name).await {
                tracing::warn!(tournament = name, %error, "cannot be cleared away yet");
            }
        }
        let now = self.clock.now();
        if let Some(store) = store {
            forget_packs(&mut *connection, store, now - FORGOTTEN).await?;
        }
        let Some(keep) = keep else { return Ok(()) };
        for first in records::old_shelves(&mut *connection, now - *keep).await? {
            // One that is held by others is emptied the next time.
            if let Err(error) = partitions::forget_records(&mut *connection, first).await {
                tracing::warn!(shelf = first, %error, "its old records cannot go yet");
            }
        }
        for edition in records::old(&mut *connection, now - *keep).await? {
            match forget_records(&mut *connection, store.as_ref(), edition).await {
                Ok(()) => {
                    tracing::info!(%edition, "its records were kept for long enough, and are gone");
                }
                Err(CleanupError::Store(error)) => {
                    tracing::warn!(%edition, %error, "its old records cannot go yet");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Clears the records of an edition away.
async fn forget_records(
    connection: &mut PgConnection,
    store: Option<&RecordStore>,
    edition: EditionId,
) -> Result<(), CleanupError> {
    while records::forget_some(&mut *connection, edition).await? > 0 {}
    remove_packs(connection, store, edition).await
}

/// Takes down the shelves of a tournament.
async fn take_down(
    connection: &mut PgConnection,
    tournament: TournamentId,
    name: &str,
) -> Result<()> {
    for first in partitions::of_tournament(&mut *connection, tournament).await? {
        let begun = Instant::now();
        partitions::take_down(&mut *connection, first).await?;
        let ms = begun.elapsed().as_millis();
        tracing::info!(tournament = name, shelf = first, ms, "what was played is gone");
    }
    Ok(())
}

/// Clears away what is left of a tournament without shelves.
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
    tracing::info!(tournament = name, "cleared away");
    Ok(())
}

/// Removes the packs of an edition to which no record refers any more.
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
        let store = store.ok_or(StoreError::Unnamed)?;
        for pack in &some {
            store.remove(edition, *pack).await?;
        }
        record_objects::forget(&mut *connection, &some).await?;
    }
}

/// Removes packs that were begun so long ago that nobody will use them any more.
async fn forget_packs(
    connection: &mut PgConnection,
    store: &RecordStore,
    before: OffsetDateTime,
) -> Result<(), CleanupError> {
    loop {
        // Locked: whoever comes to use one all the same finds it gone, and keeps its records anew.
        let mut transaction = connection.begin().await?;
        let some = record_objects::forgotten(&mut *transaction, before).await?;
        if some.is_empty() {
            return Ok(transaction.rollback().await?);
        }
        for (edition, pack) in &some {
            store.remove(*edition, *pack).await?;
        }
        let some: Vec<_> = some.into_iter().map(|(_, pack)| pack).collect();
        record_objects::forget(&mut transaction, &some).await?;
        transaction.commit().await?;
    }
}
