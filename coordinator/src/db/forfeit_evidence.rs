//! Evidence of forfeits and of first bad replies.

use arbiter_proto::ids::{MatchNumber, TournamentId};
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

/// Inserts evidence of several tournaments.
///
/// # Errors
/// If there is evidence for one of the seats already, or it is invalid.
pub async fn insert(db: impl PgExecutor<'_>, evidence: &[(TournamentId, &Evidence)]) -> Result<()> {
    let statement = "
        INSERT INTO evidence (tournament, number, seat, wall_us, cpu_us, detail)
        SELECT * FROM unnest($1::int[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[],
            $6::text[])";
    let rows = evidence.iter();
    sqlx::query(statement)
        .bind(rows.clone().map(|(tournament, _)| *tournament).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.number).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.seat).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.wall_us).collect::<Vec<_>>())
        .bind(rows.clone().map(|(_, row)| row.cpu_us).collect::<Vec<_>>())
        .bind(rows.map(|(_, row)| row.detail.as_str()).collect::<Vec<_>>())
        .execute(db)
        .await
        .map(drop)
}

/// The evidence of these matches.
pub async fn of_matches(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
) -> Result<Vec<Evidence>> {
    let statement = "
        SELECT e.number, e.seat, e.wall_us, e.cpu_us, e.detail
        FROM unnest($2::bigint[]) AS u (number)
        JOIN evidence e ON e.tournament = $1 AND e.number = u.number";
    sqlx::query_as(statement).bind(tournament).bind(numbers).fetch_all(db).await
}
