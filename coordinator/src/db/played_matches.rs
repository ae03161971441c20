//! Queries for played matches, with entrants and results.
//!
//! A query reads only the rows that it returns, even in a large edition. It starts from results and
//! looks up each match (`LATERAL … OFFSET 0`). Otherwise the planner may read both tables from the
//! first match of the edition on, to merge them.

use arbiter_proto::ids::{EditionId, LotNumber, MatchId, MatchNumber};
use arbiter_ranking::Entrant;
use serde_json::Value;
use sqlx::{FromRow, PgExecutor, Result};

use super::lots::LotState;
use super::matches::Seats;
use super::results::MatchResult;

/// A match of an edition that was played.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct PlayedMatch {
    /// Its result.
    #[sqlx(flatten)]
    pub result: MatchResult,
    /// The key from which its seed is derived.
    pub seed_key: i64,
    /// The entrants, seat 1 first.
    #[sqlx(try_from = "Vec<i32>")]
    pub seats: Seats,
    /// Parameters that differ from the tournament's.
    pub params: Option<Value>,
    /// The level of the sandbox it was played in.
    pub level: String,
    /// The edition in which it was played, if its result is reused.
    pub source_edition: Option<i32>,
    /// Its number in that edition.
    pub source_number: Option<i64>,
}

impl PlayedMatch {
    /// The match of an earlier edition whose result it reuses.
    pub fn source(&self) -> Option<MatchId> {
        let edition = self.source_edition?;
        let number = self.source_number?;
        Some(MatchId { edition: EditionId(edition), number: MatchNumber(number) })
    }

    /// The score of a seat, counted from 0, most important component first.
    pub fn score(&self, seat: usize) -> &[i64] {
        let scores = &self.result.scores;
        let components = scores.len() / self.seats.0.len().max(1);
        scores.chunks(components.max(1)).nth(seat).unwrap_or_default()
    }
}

/// The columns of a match `m` and its result `r` that [`PlayedMatch`] has, and the rest of the
/// statement.
macro_rules! played {
    ($rest:literal) => {
        concat!(
            "SELECT m.number, m.seed_key, m.seats, m.params, r.scores, r.forfeits, r.bad_answers,
                r.transcript, r.wall_ms, r.level::text, r.source_edition, r.source_number ",
            $rest
        )
    };
}

/// The played matches of an edition after the match `after`, in order: at most 1000.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    after: MatchNumber,
) -> Result<Vec<PlayedMatch>> {
    let statement = played!(
        "
        FROM (
            SELECT * FROM results WHERE edition = $1 AND number > $2 ORDER BY number LIMIT 1000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches WHERE edition = $1 AND number = r.number OFFSET 0
        ) AS m
        ORDER BY m.number"
    );
    sqlx::query_as(statement).bind(edition).bind(after).fetch_all(db).await
}

/// A match of an edition, if it was played.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<PlayedMatch>> {
    let statement = played!(
        "
        FROM results r JOIN matches m USING (edition, number)
        WHERE edition = $1 AND number = $2"
    );
    sqlx::query_as(statement).bind(id.edition).bind(id.number).fetch_optional(db).await
}

/// The lot of a match and its state.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct LotStatus {
    /// The lot.
    pub lot: LotNumber,
    /// Its state.
    pub state: LotState,
    /// The name of the worker that reported it.
    pub worker: Option<String>,
}

/// The lot of a match. If the match is retried in a separate lot, this lot.
pub async fn lot(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<LotStatus>> {
    // Lots are numbered in the order of their matches. A binary search with index lookups finds the
    // last lot whose first match is not after this match.
    let statement = "
        WITH RECURSIVE halves (low, high) AS (
            SELECT 0::bigint, (SELECT number FROM lots WHERE edition = $1 AND number >= 0
                ORDER BY number DESC LIMIT 1)
            UNION ALL
            SELECT CASE WHEN is_before THEN middle ELSE low END,
                CASE WHEN is_before THEN high ELSE middle - 1 END
            FROM (
                SELECT h.low, h.high, m.middle, coalesce((
                    SELECT l.first_match <= $2 FROM lots l WHERE l.edition = $1 AND l.number = m.middle
                ), false) AS is_before
                FROM halves h CROSS JOIN LATERAL (SELECT (h.low + h.high + 1) / 2 AS middle) AS m
                WHERE h.low < h.high
            ) AS half
        )
        SELECT l.number AS lot, l.state, w.name AS worker
        FROM (
            (SELECT * FROM lots WHERE edition = $1 AND number = -1 - $2)
            UNION ALL
            (SELECT * FROM lots WHERE edition = $1
                AND number = (SELECT low FROM halves WHERE low >= high)
                AND first_match <= $2 AND first_match + count > $2)
        ) AS l
        LEFT JOIN workers w ON w.id = l.worker
        ORDER BY l.number LIMIT 1";
    sqlx::query_as(statement).bind(id.edition).bind(id.number).fetch_optional(db).await
}

/// The played matches of one entrant, newest first: at most 1000, from the last 200 000 played
/// matches of the edition. With `forfeits`, only matches that the entrant forfeited.
pub async fn of_entrant(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    entrant: Entrant,
    forfeits: bool,
) -> Result<Vec<PlayedMatch>> {
    let statement = played!(
        "
        FROM (
            SELECT * FROM results WHERE edition = $1 ORDER BY number DESC LIMIT 200000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE edition = $1 AND number = r.number AND $2 = ANY (seats) OFFSET 0
        ) AS m
        WHERE NOT $3 OR r.forfeits[array_position(m.seats, $2)] > 0
        ORDER BY r.number DESC LIMIT 1000"
    );
    let query = sqlx::query_as(statement).bind(edition).bind(entrant.0).bind(forfeits);
    query.fetch_all(db).await
}

/// The last played matches of an entrant with their seats: at most `limit`, from the last 200 000
/// played matches of the edition.
pub async fn last_of(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    entrant: Entrant,
    limit: i64,
) -> Result<Vec<(MatchNumber, Seats)>> {
    let statement = "
        SELECT m.number, m.seats FROM (
            SELECT number FROM results WHERE edition = $1 ORDER BY number DESC LIMIT 200000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE edition = $1 AND number = r.number AND $2 = ANY (seats) OFFSET 0
        ) AS m
        ORDER BY r.number DESC LIMIT $3";
    let query = sqlx::query_as(statement).bind(edition).bind(entrant.0).bind(limit);
    let rows: Vec<(MatchNumber, Vec<i32>)> = query.fetch_all(db).await?;
    Ok(rows.into_iter().map(|(number, seats)| (number, seats.into())).collect())
}
