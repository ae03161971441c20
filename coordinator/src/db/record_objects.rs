//! Packs: objects in the record store. A pack holds records that were reported together.

use std::{fmt, io};

use arbiter_proto::ids::TournamentId;
use sqlx::{Error, PgConnection, PgExecutor, Result};
use time::OffsetDateTime;

/// The random identity of a pack, unique across databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct PackId(pub [u8; 16]);

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Announces a pack for each of these tournaments, before the records are uploaded.
pub async fn begin(
    db: impl PgExecutor<'_>,
    tournaments: &[TournamentId],
    now: OffsetDateTime,
) -> Result<Vec<(TournamentId, PackId)>> {
    let statement = "
        INSERT INTO record_objects (tournament, begun_at)
        SELECT u.tournament, $2 FROM unnest($1::int[]) AS u (tournament)
        RETURNING tournament, id";
    sqlx::query_as(statement).bind(tournaments).bind(now).fetch_all(db).await
}

/// Records that these packs are used, in the transaction that stores their records.
///
/// # Errors
/// If one of them no longer exists.
pub async fn mark_used(db: impl PgExecutor<'_>, packs: &[PackId]) -> Result<()> {
    let statement = "UPDATE record_objects SET used = true WHERE id = ANY ($1)";
    let marked = sqlx::query(statement).bind(bytes(packs)).execute(db).await?.rows_affected();
    if marked == packs.len() as u64 {
        return Ok(());
    }
    // The upload took too long, so its packs were removed. The caller must upload the records
    // again.
    Err(Error::Io(io::Error::other(
        "the upload of records took too long, and the unused records were deleted",
    )))
}

/// At most 20 packs that were announced before this time and never used. They are locked until the
/// transaction ends.
pub async fn find_unused(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Vec<(TournamentId, PackId)>> {
    let statement = "
        SELECT tournament, id FROM record_objects WHERE NOT used AND begun_at < $1
        ORDER BY begun_at LIMIT 20 FOR UPDATE SKIP LOCKED";
    sqlx::query_as(statement).bind(before).fetch_all(db).await
}

/// At most 100 used packs of a tournament. Unused packs are removed separately.
pub async fn of_tournament(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<PackId>> {
    let statement = "SELECT id FROM record_objects WHERE tournament = $1 AND used LIMIT 100";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// Whether any pack exists.
pub async fn any(db: impl PgExecutor<'_>) -> Result<bool> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM record_objects)").fetch_one(db).await
}

/// Deletes the rows of packs whose objects were removed.
pub async fn delete(connection: &mut PgConnection, packs: &[PackId]) -> Result<()> {
    let statement = "DELETE FROM record_objects WHERE id = ANY ($1)";
    sqlx::query(statement).bind(bytes(packs)).execute(connection).await.map(drop)
}

/// The ids of packs as a column.
fn bytes(packs: &[PackId]) -> Vec<&[u8]> {
    packs.iter().map(|pack| pack.0.as_slice()).collect()
}
