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
            SELECT avg(s.wall_ms)::float8 FROM (
                SELECT r.wall_ms FROM (
                    SELECT id FROM editions WHERE tournament = $1 ORDER BY id DESC LIMIT 4
                ) e CROSS JOIN LATERAL (
                    SELECT wall_ms FROM results WHERE edition = e.id
                    ORDER BY number DESC LIMIT $3
                ) r LIMIT $3
            ) s
        ) AS wall_ms, (
            SELECT avg(s.size)::float8 FROM (
                SELECT r.size FROM (
                    SELECT id FROM editions WHERE tournament = $1 ORDER BY id DESC LIMIT 4
                ) e CROSS JOIN LATERAL (
                    SELECT coalesce(length, octet_length(bytes)) AS size FROM records WHERE edition = e.id
                    ORDER BY number DESC LIMIT $2
                ) r LIMIT $2
            ) s
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
    /// The number of its matches in the edition with most of them.
    pub times: i64,
}

/// The lineups of the matches that were played with the seed of the next edition. The next edition
/// may reuse the results of these matches.
pub async fn lineups(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Lineup>> {
    let statement = "
        SELECT board, digests, max(times) AS times FROM (
            SELECT edition, board, digests, sum(times)::bigint AS times FROM (
                SELECT m.edition, m.board, count(*) AS times, (
                    SELECT array_agg(v.digest ORDER BY s.seat)
                    FROM unnest(m.seats) WITH ORDINALITY AS s (entrant, seat)
                    JOIN entrants n ON n.edition = m.edition AND n.entrant = s.entrant
                    JOIN versions v ON v.id = n.version
                ) AS digests
                FROM matches m JOIN results r ON r.edition = m.edition AND r.number = m.number
                WHERE m.edition IN (
                    SELECT e.id FROM editions e JOIN tournaments t ON t.id = e.tournament
                    WHERE t.id = $1 AND e.number >= coalesce(t.beacon_from, 0))
                GROUP BY m.edition, m.board, m.seats
            ) f GROUP BY edition, board, digests
        ) f GROUP BY board, digests";
    let mut rows = sqlx::query_as(statement).bind(tournament).fetch(db);
    let mut lineups = Vec::new();
    while let Some(row) = rows.next().await {
        lineups.push(row?);
    }
    Ok(lineups)
}
