//! The full transcripts of matches, compressed.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber};
use sqlx::{Error, PgConnection, PgExecutor};

use super::copy::{Rows, send};

/// Records of several editions, on their way into the database.
#[derive(Debug)]
pub struct Batch(Rows);

impl<'a> FromIterator<(EditionId, MatchNumber, &'a [u8])> for Batch {
    fn from_iter<I: IntoIterator<Item = (EditionId, MatchNumber, &'a [u8])>>(records: I) -> Self {
        let mut rows = Rows::new();
        for (edition, number, bytes) in records {
            rows.row(3).int8(number.0).int4(edition.0).bytes(bytes);
        }
        Self(rows)
    }
}

/// Adds records, and returns how many.
///
/// # Errors
/// If one is there already, or the database fails.
pub async fn copy_in(connection: &mut PgConnection, batch: Batch) -> Result<u64, Error> {
    send(connection, "COPY records (number, edition, bytes) FROM STDIN (FORMAT binary)", batch.0)
        .await
}

/// The record of a match, as it was compressed: that of the match it was taken over from, if it
/// was.
///
/// # Errors
/// If the database fails.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<Vec<u8>>, Error> {
    let statement = "
        SELECT c.bytes FROM results r
        JOIN records c ON c.edition = coalesce(r.source_edition, r.edition)
            AND c.number = coalesce(r.source_number, r.number)
        WHERE r.edition = $1 AND r.number = $2";
    sqlx::query_scalar(statement).bind(id.edition.0).bind(id.number.0).fetch_optional(db).await
}
