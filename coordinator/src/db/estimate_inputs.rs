//! Data for estimates about a tournament: the times of its matches, the sizes of their records, and
//! the lineups of its matches.

use arbiter_proto::ids::TournamentId;
use sqlx::{FromRow, PgExecutor, Result};
use tokio_stream::StreamExt as _;

/// Maximum number of records whose size is read.
const MAX_RECORDS: i64 = 1000;
/// Maximum number of matches whose times are read, newest first.
const MAX_MATCHES: i64 = 10_000;

/// Means over the matches of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, FromRow)]
pub struct Means {
    /// The mean time of a match, in milliseconds; `None` if no match was played.
    pub wall_ms: Option<f64>,
    /// The mean size of a record, in bytes; `None` if there are no records.
    pub record: Option<f64>,
}

/// Means over the played matches of a tournament.
pub async fn means(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Means> {
    let statement = "
        SELECT (
            SELECT avg(r.wall_ms)::float8 FROM (
                SELECT wall_ms FROM results WHERE tournament = $1 ORDER BY number DESC LIMIT $3
            ) r
        ) AS wall_ms, (
            SELECT avg(r.size)::float8 FROM (
                SELECT coalesce(length, octet_length(bytes)) AS size FROM records
                WHERE tournament = $1 ORDER BY number DESC LIMIT $2
            ) r
        ) AS record";
    sqlx::query_as(statement)
        .bind(tournament)
        .bind(MAX_RECORDS)
        .bind(MAX_MATCHES)
        .fetch_one(db)
        .await
}

/// A combination of programs in the seats of a match.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Lineup {
    /// The digests of their versions, seat 1 first.
    pub digests: Vec<Vec<u8>>,
    /// The board, if the tournament has several.
    pub board: Option<i16>,
    /// The number of its matches.
    pub times: i64,
}

/// The lineups of the matches that were played with the seed of the next edition. The next edition
/// may share these matches.
pub async fn lineups(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Lineup>> {
    let statement = "
        SELECT board, digests, sum(times)::bigint AS times FROM (
            SELECT m.board, count(*) AS times, (
                SELECT array_agg(v.digest ORDER BY s.seat)
                FROM unnest(m.seats) WITH ORDINALITY AS s (entrant, seat)
                JOIN versions v ON v.id = s.entrant
            ) AS digests
            FROM matches m JOIN results r ON r.tournament = m.tournament AND r.number = m.number
            WHERE m.tournament = $1 AND m.number >= (
                SELECT min(e.first_match)
                FROM editions e JOIN tournaments t ON t.id = e.tournament
                WHERE t.id = $1 AND e.number >= coalesce(t.beacon_from, 0))
            GROUP BY m.board, m.seats
        ) f GROUP BY board, digests";
    let mut rows = sqlx::query_as(statement).bind(tournament).fetch(db);
    let mut lineups = Vec::new();
    while let Some(row) = rows.next().await {
        lineups.push(row?);
    }
    Ok(lineups)
}
