//! The compressed transcripts of matches, stored in the database or in packs of the record store.

use std::ops::Range;

use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId};
use sqlx::postgres::PgRow;
use sqlx::{Decode, FromRow, PgConnection, PgExecutor, Postgres, Result, Row as _, Type};
use time::OffsetDateTime;

use super::binary_copy::send;
use super::editions::{EditionScope, members};
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

/// Adds records of several tournaments, and returns their number.
pub async fn copy_in<'a>(
    connection: &mut PgConnection,
    records: impl Iterator<Item = (TournamentId, MatchNumber, Record<&'a [u8]>)> + Send,
) -> Result<u64> {
    let statement = "
        COPY records (number, tournament, bytes, object, start, length) FROM STDIN (FORMAT binary)";
    send(connection, statement, records, |(tournament, number, record), rows| {
        rows.row(6).int8(number.0).int4(tournament.0);
        match record {
            Record::InDatabase(bytes) => rows.bytes(bytes).null().null().null(),
            Record::InPack(Slice { pack, start, length }) => {
                rows.null().bytes(&pack.0).int4(start).int4(length)
            }
        };
    })
    .await
}

impl<'r, B: Decode<'r, Postgres> + Type<Postgres>> FromRow<'r, PgRow> for Record<B> {
    fn from_row(row: &'r PgRow) -> Result<Self> {
        Ok(match row.try_get("bytes")? {
            Some(bytes) => Self::InDatabase(bytes),
            None => Self::InPack(Slice {
                pack: row.try_get("object")?,
                start: row.try_get("start")?,
                length: row.try_get("length")?,
            }),
        })
    }
}

/// The compressed record of a match.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<Record<Vec<u8>>>> {
    let statement = "
        SELECT bytes, object, start, length FROM records WHERE tournament = $1 AND number = $2";
    sqlx::query_as(statement).bind(id.tournament).bind(id.number).fetch_optional(db).await
}

/// Like [`find`], but with the size of the record in bytes instead of its bytes.
pub async fn find_size(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<Record<i32>>> {
    let statement = "
        SELECT octet_length(bytes) AS bytes, object, start, length
        FROM records WHERE tournament = $1 AND number = $2";
    sqlx::query_as(statement).bind(id.tournament).bind(id.number).fetch_optional(db).await
}

/// The bytes of a record in this range, from 0; fewer at its end. `None` if it is not in the
/// database.
pub async fn piece(
    db: impl PgExecutor<'_>,
    id: MatchId,
    range: Range<i32>,
) -> Result<Option<Vec<u8>>> {
    let statement = "
        SELECT substring(bytes FROM $3 FOR $4) FROM records WHERE tournament = $1 AND number = $2";
    let query = sqlx::query_scalar(statement).bind(id.tournament).bind(id.number);
    let query = query.bind(range.start + 1).bind(range.end - range.start);
    Ok(query.fetch_optional(db).await?.flatten())
}

/// Whether a match has a record, which is not read.
pub async fn exists(db: impl PgExecutor<'_>, id: MatchId) -> Result<bool> {
    let statement = "SELECT EXISTS (SELECT FROM records WHERE tournament = $1 AND number = $2)";
    sqlx::query_scalar(statement).bind(id.tournament).bind(id.number).fetch_one(db).await
}

/// The record of a match of an edition, with its seed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRecord {
    /// The match.
    pub number: MatchNumber,
    /// Its seed key.
    pub seed_key: i64,
    /// Its record, or the position of the record in a pack.
    pub record: Record<Vec<u8>>,
}

impl FromRow<'_, PgRow> for KeyedRecord {
    fn from_row(row: &PgRow) -> Result<Self> {
        let number = row.try_get("number")?;
        Ok(Self { number, seed_key: row.try_get("seed_key")?, record: Record::from_row(row)? })
    }
}

/// The records of the matches of an edition after the match `after`, in order: at most 64.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    after: MatchNumber,
) -> Result<Vec<KeyedRecord>> {
    let statement = concat!(
        "SELECT c.number, m.seed_key, c.bytes, c.object, c.start, c.length
        FROM records c
        CROSS JOIN LATERAL (
            SELECT seed_key FROM matches WHERE tournament = $1 AND number = c.number OFFSET 0
        ) AS m
        WHERE ",
        members!("c"),
        " AND c.number > $4 ORDER BY c.number LIMIT 64"
    );
    sqlx::query_as_with(statement, edition.arguments())
        .bind(after.0.max(edition.from - 1))
        .fetch_all(db)
        .await
}

/// The tournaments with records that ended before this time.
pub async fn expired(db: impl PgExecutor<'_>, before: OffsetDateTime) -> Result<Vec<TournamentId>> {
    let statement = "
        SELECT t.id FROM tournaments t
        WHERE t.ended_at < $1 AND (
            EXISTS (SELECT FROM records c WHERE c.tournament = t.id)
            OR EXISTS (SELECT FROM record_objects p WHERE p.tournament = t.id AND p.used))
        ORDER BY t.id";
    sqlx::query_scalar(statement).bind(before).fetch_all(db).await
}

/// The tournaments with records in partitions of their own that ended before this time.
pub async fn expired_partitions(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Vec<TournamentId>> {
    let statement = "
        SELECT t.id FROM tournaments t JOIN partitions s ON s.tournament = t.id
        WHERE t.ended_at < $1 AND EXISTS (SELECT FROM records c WHERE c.tournament = t.id)
        ORDER BY t.id";
    sqlx::query_scalar(statement).bind(before).fetch_all(db).await
}

/// Removes at most a thousand records of a tournament, and returns their number.
pub async fn delete_some(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<u64> {
    let statement = "
        DELETE FROM records WHERE tournament = $1 AND number <= (
            SELECT max(number) FROM (
                SELECT number FROM records WHERE tournament = $1 ORDER BY number LIMIT 1000
            ) AS few)";
    Ok(sqlx::query(statement).bind(tournament).execute(db).await?.rows_affected())
}
