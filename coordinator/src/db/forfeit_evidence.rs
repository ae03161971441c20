//! Evidence of forfeits and of first bad replies.

use arbiter_proto::ids::{EditionId, MatchNumber};
use sqlx::{FromRow, PgExecutor, Result};

/// The reason of a seat's forfeit, or its first bad reply.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Evidence {
    /// The match.
    pub number: MatchNumber,
    /// The seat, from 1.
    pub seat: i16,
    /// The wall-clock time of the reply, in microseconds.
    pub wall_us: i64,
    /// The processor time of the reply, in microseconds.
    pub cpu_us: i64,
    /// A description of what happened.
    pub detail: String,
}

/// Inserts evidence of several editions.
///
/// # Errors
/// If there is evidence for one of the seats already, or it is invalid.
pub async fn insert(db: impl PgExecutor<'_>, evidence: &[(EditionId, &Evidence)]) -> Result<()> {
    let statement = "
        INSERT INTO evidence (edition, number, seat, wall_us, cpu_us, detail)
        SELECT * FROM unnest($1::int[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[],
            $6::text[])";
    let rows = evidence.iter();
    sqlx::query(statement)
        .bind(rows.clone().map(|(edition, _)| *edition).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.number).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.seat).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.wall_us).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.cpu_us).collect::<Vec<_>>())
        .bind(rows.map(|(_, row)| row.detail.as_str()).collect::<Vec<_>>())
        .execute(db)
        .await
        .map(drop)
}

/// The evidence of these matches. For reused results this is the evidence of the original matches.
pub async fn of_matches(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    numbers: &[MatchNumber],
) -> Result<Vec<Evidence>> {
    let statement = "
        SELECT r.number, e.seat, e.wall_us, e.cpu_us, e.detail
        FROM unnest($2::bigint[]) AS u (number)
        JOIN results r ON r.edition = $1 AND r.number = u.number
        JOIN evidence e ON e.edition = coalesce(r.source_edition, $1)
            AND e.number = coalesce(r.source_number, u.number)";
    sqlx::query_as(statement).bind(edition).bind(numbers).fetch_all(db).await
}
