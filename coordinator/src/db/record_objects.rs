//! Packs: objects outside of the database that hold the records which were reported together.

use std::{fmt, io};

use arbiter_proto::ids::EditionId;
use sqlx::{Error, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

/// Which pack: drawn at random, so that no two databases have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct PackId(pub [u8; 16]);

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Announces a pack for each of these editions, before anything is stored.
pub async fn begin(
    db: impl PgExecutor<'_>,
    editions: &[EditionId],
    now: OffsetDateTime,
) -> Result<Vec<(EditionId, PackId)>> {
    let statement = "
        INSERT INTO record_objects (edition, begun_at) SELECT u.edition, $2 FROM unnest($1::int[]) AS u (edition)
        RETURNING edition, id";
    sqlx::query_as(statement).bind(editions).bind(now).fetch_all(db).await
}

/// Says that records refer to these packs, in the transaction that stores them.
///
/// # Errors
/// If one of them is not there any more.
pub async fn used(db: impl PgExecutor<'_>, packs: &[PackId]) -> Result<()> {
    let statement = "UPDATE record_objects SET used = true WHERE id = ANY ($1)";
    let used = sqlx::query(statement).bind(bytes(packs)).execute(db).await?.rows_affected();
    if used == packs.len() as u64 {
        return Ok(());
    }
    // Somebody was slower than anybody should be, and is to do it again.
    Err(Error::Io(io::Error::other("records were taken away before their matches were counted")))
}

/// Some packs that were begun before a moment and never used, locked until the transaction ends.
pub async fn forgotten(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Vec<(EditionId, PackId)>> {
    let statement = "
        SELECT edition, id FROM record_objects WHERE NOT used AND begun_at < $1
        ORDER BY begun_at LIMIT 20 FOR UPDATE SKIP LOCKED";
    sqlx::query_as(statement).bind(before).fetch_all(db).await
}

/// Some packs of an edition that were used: one that was not is forgotten in its time.
pub async fn of_edition(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<PackId>> {
    let statement = "SELECT id FROM record_objects WHERE edition = $1 AND used LIMIT 100";
    sqlx::query_scalar(statement).bind(edition).fetch_all(db).await
}

/// Whether anything is in a store.
pub async fn any(db: impl PgExecutor<'_>) -> Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM record_objects)").fetch_one(db).await
}

/// Forgets packs whose objects are gone.
pub async fn forget(connection: &mut PgConnection, packs: &[PackId]) -> Result<()> {
    let statement = "DELETE FROM record_objects WHERE id = ANY ($1)";
    sqlx::query(statement).bind(bytes(packs)).execute(connection).await.map(drop)
}

/// Packs as a column.
fn bytes(packs: &[PackId]) -> Vec<&[u8]> {
    packs.iter().map(|pack| pack.0.as_slice()).collect()
}
