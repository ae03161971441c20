//! Data for estimates about a tournament: how long its matches took, how large their records are,
//! and which programs met.

use arbiter_proto::ids::TournamentId;
use sqlx::{FromRow, PgExecutor, Result};
use tokio_stream::StreamExt as _;

/// Maximum number of records whose size is read.
const SAMPLE: i64 = 1000;
/// Maximum number of matches whose times are read, newest first.
const MATCHES: i64 = 10_000;

/// Means over the matches of a tournament.
#[derive(Clone, Copy, Debug, PartialEq, FromRow)]
pub struct Means {
    /// The mean time of a match, in milliseconds; none if no match was played.
    pub wall_ms: Option<f64>,
    /// The mean size of a record, in bytes; none if there are no records.
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
    sqlx::query_as(statement).bind(tournament).bind(SAMPLE).bind(MATCHES).fetch_one(db).await
}

/// How often the same programs met in the same seats in one edition.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Met {
    /// The digests of their versions, seat 1 first.
    pub digests: Vec<Vec<u8>>,
    /// The board, where there are several.
    pub board: Option<i16>,
    /// How often, in the edition in which they met most often.
    pub times: i64,
}

/// Which programs have met in a tournament, with the seed of its next edition. Results of their
/// matches may be reused.
pub async fn met(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Met>> {
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
    let mut met = Vec::new();
    while let Some(row) = rows.next().await {
        met.push(row?);
    }
    Ok(met)
}
