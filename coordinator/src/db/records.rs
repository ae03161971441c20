//! The compressed transcripts of matches, stored in the database or in packs of the record store.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, PgExecutor, Result, Row as _};
use time::OffsetDateTime;

use super::binary_copy::send;
use super::record_objects::PackId;

/// Where a record is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<B> {
    /// The bytes of the record, from the database.
    InDatabase(B),
    /// The position of the record in a pack.
    InPack(Slice),
}

/// A part of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The pack.
    pub pack: PackId,
    /// The position of the record in the pack, in bytes.
    pub start: i32,
    /// The length of the record, in bytes.
    pub length: i32,
}

/// Adds records of several editions, and returns their number.
pub async fn copy_in<'a>(
    connection: &mut PgConnection,
    records: impl Iterator<Item = (EditionId, MatchNumber, Record<&'a [u8]>)> + Send,
) -> Result<u64> {
    let statement = "
        COPY records (number, edition, bytes, object, start, length) FROM STDIN (FORMAT binary)";
    send(connection, statement, records, |(edition, number, record), rows| {
        rows.row(6).int8(number.0).int4(edition.0);
        match record {
            Record::InDatabase(bytes) => rows.bytes(bytes).null().null().null(),
            Record::InPack(Slice { pack, start, length }) => {
                rows.null().bytes(&pack.0).int4(start).int4(length)
            }
        };
    })
    .await
}

/// A record, and the edition in which its match was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The edition.
    pub edition: EditionId,
    /// The record, or its position in a pack.
    pub record: Record<Vec<u8>>,
}

impl FromRow<'_, PgRow> for StoredRecord {
    fn from_row(row: &PgRow) -> Result<Self> {
        let record = match row.try_get("bytes")? {
            Some(bytes) => Record::InDatabase(bytes),
            None => Record::InPack(Slice {
                pack: row.try_get("object")?,
                start: row.try_get("start")?,
                length: row.try_get("length")?,
            }),
        };
        Ok(Self { edition: row.try_get("edition")?, record })
    }
}

/// The compressed record of a match. For a reused result this is the record of the original match.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<StoredRecord>> {
    let statement = "
        SELECT c.edition, c.bytes, c.object, c.start, c.length FROM results r
        JOIN records c ON c.edition = coalesce(r.source_edition, r.edition)
            AND c.number = coalesce(r.source_number, r.number)
        WHERE r.edition = $1 AND r.number = $2";
    sqlx::query_as(statement).bind(id.edition).bind(id.number).fetch_optional(db).await
}

/// The record of a match of an edition, with its seed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRecord {
    /// The match.
    pub number: MatchNumber,
    /// Its seed key.
    pub seed_key: i64,
    /// Its record.
    pub stored: StoredRecord,
}

impl FromRow<'_, PgRow> for KeyedRecord {
    fn from_row(row: &PgRow) -> Result<Self> {
        let number = row.try_get("number")?;
        Ok(Self {
            number,
            seed_key: row.try_get("seed_key")?,
            stored: StoredRecord::from_row(row)?,
        })
    }
}

/// The records of the matches of an edition after the match `after`, in order: at most 64. For
/// reused results these are the records of the original matches.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    after: MatchNumber,
) -> Result<Vec<KeyedRecord>> {
    let statement = "
        SELECT m.number, m.seed_key, c.edition, c.bytes, c.object, c.start, c.length
        FROM results r
        CROSS JOIN LATERAL (
            SELECT number, seed_key FROM matches WHERE edition = $1 AND number = r.number OFFSET 0
        ) AS m
        CROSS JOIN LATERAL (
            SELECT * FROM records
            WHERE edition = coalesce(r.source_edition, r.edition)
              AND number = coalesce(r.source_number, r.number) OFFSET 0
        ) AS c
        WHERE r.edition = $1 AND r.number > $2 ORDER BY r.number LIMIT 64";
    sqlx::query_as(statement).bind(edition).bind(after).fetch_all(db).await
}

/// The editions with records of tournaments that ended before this time.
pub async fn expired_editions(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Vec<EditionId>> {
    let statement = "
        SELECT e.id FROM tournaments t JOIN editions e ON e.tournament = t.id
        WHERE t.ended_at < $1 AND (
            EXISTS (SELECT FROM records c WHERE c.edition = e.id)
            OR EXISTS (SELECT FROM record_objects p WHERE p.edition = e.id AND p.used))
        ORDER BY e.id";
    sqlx::query_scalar(statement).bind(before).fetch_all(db).await
}

/// The partitions with records of tournaments that ended before this time, each named by the first
/// edition id of its range.
pub async fn expired_partitions(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Vec<i32>> {
    let statement = "
        SELECT s.first_edition FROM tournaments t JOIN partitions s ON s.tournament = t.id
        WHERE t.ended_at < $1 AND EXISTS (
            SELECT FROM records c WHERE c.edition >= s.first_edition AND c.edition < s.end_edition)
        ORDER BY s.first_edition";
    sqlx::query_scalar(statement).bind(before).fetch_all(db).await
}

/// Removes at most a thousand records of an edition, and returns their number.
pub async fn delete_some(db: impl PgExecutor<'_>, edition: EditionId) -> Result<u64> {
    let statement = "
        DELETE FROM records WHERE edition = $1 AND number <= (
            SELECT max(number) FROM (
                SELECT number FROM records WHERE edition = $1 ORDER BY number LIMIT 1000
            ) AS few)";
    Ok(sqlx::query(statement).bind(edition).execute(db).await?.rows_affected())
}
