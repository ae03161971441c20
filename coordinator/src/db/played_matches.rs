//! Queries for played matches, with entrants and results.
//!
//! A query reads only the rows that it returns, even in a large edition. It starts from results and
//! looks up each match (`LATERAL … OFFSET 0`). Otherwise the planner may read both tables from the
//! first match of the edition on, to merge them.

use arbiter_proto::ids::{LotNumber, MatchId, MatchNumber, TournamentId};
use arbiter_ranking::Entrant;
use serde_json::Value;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

use super::editions::{EditionScope, members};
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
    /// The index of the tournament's board, if there are several.
    pub board: Option<i16>,
    /// The entrants, seat 1 first.
    #[sqlx(try_from = "Vec<i32>")]
    pub seats: Seats,
    /// Parameters that differ from the tournament's.
    pub params: Option<Value>,
    /// The level of the sandbox it was played in.
    pub level: String,
}

impl PlayedMatch {
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
    ($($rest:expr),+) => {
        concat!(
            "SELECT m.number, m.seed_key, m.board, m.seats, m.params, r.scores, r.forfeits, r.bad_answers,
                r.transcript, r.wall_ms, r.level::text ",
            $($rest),+
        )
    };
}

/// The played matches of an edition after the match `after`, in order: at most 1000.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    after: MatchNumber,
) -> Result<Vec<PlayedMatch>> {
    let statement = played!(
        "
        FROM (
            SELECT * FROM results r WHERE ",
        members!("r"),
        " AND r.number > $4 ORDER BY r.number LIMIT 1000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches WHERE tournament = $1 AND number = r.number OFFSET 0
        ) AS m
        ORDER BY m.number"
    );
    sqlx::query_as_with(statement, edition.arguments())
        .bind(after.0.max(edition.from - 1))
        .fetch_all(db)
        .await
}

/// A match, if it was played.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<PlayedMatch>> {
    let statement = played!(
        "
        FROM results r JOIN matches m USING (tournament, number)
        WHERE tournament = $1 AND number = $2"
    );
    sqlx::query_as(statement).bind(id.tournament).bind(id.number).fetch_optional(db).await
}

/// The played matches of a tournament, newest first: at most `limit`, from the match before
/// `before` on.
pub async fn newest(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    before: Option<MatchNumber>,
    limit: u32,
) -> Result<Vec<MatchNumber>> {
    let statement = "
        SELECT number FROM results WHERE tournament = $1 AND number < $2
        ORDER BY number DESC LIMIT $3";
    let before = before.map_or(i64::MAX, |before| before.0);
    let query = sqlx::query_scalar(statement).bind(tournament).bind(before);
    query.bind(i64::from(limit)).fetch_all(db).await
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

/// The lot of a match. None if no edition needs the match any more.
pub async fn lot(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<LotStatus>> {
    let statement = "
        SELECT l.number AS lot, l.state, w.name AS worker
        FROM (
            SELECT * FROM lots WHERE tournament = $1 AND number <= $2
            ORDER BY number DESC LIMIT 1
        ) AS l
        LEFT JOIN workers w ON w.id = l.worker
        WHERE $2 < l.number + l.count";
    sqlx::query_as(statement).bind(id.tournament).bind(id.number).fetch_optional(db).await
}

/// The matches of a tournament that any of these entrants played, newest first: at most 1000, from
/// the last 200 000 played matches of the tournament. With `forfeits`, only matches that one of
/// them forfeited.
pub async fn of_entrants(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    entrants: &[Entrant],
    forfeits: bool,
) -> Result<Vec<PlayedMatch>> {
    let statement = played!(
        "
        FROM (
            SELECT * FROM results WHERE tournament = $1 ORDER BY number DESC LIMIT 200000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE tournament = $1 AND number = r.number AND seats && $2::int[] OFFSET 0
        ) AS m
        WHERE NOT $3 OR EXISTS (
            SELECT FROM unnest(m.seats, r.forfeits) AS s (entrant, forfeit)
            WHERE s.entrant = ANY ($2) AND s.forfeit > 0)
        ORDER BY r.number DESC LIMIT 1000"
    );
    let entrants: Vec<_> = entrants.iter().map(|entrant| entrant.0).collect();
    sqlx::query_as(statement).bind(tournament).bind(entrants).bind(forfeits).fetch_all(db).await
}

/// Those of these matches of a tournament that had been played by this time, in an edition that had
/// ended by then.
pub async fn shown_by(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
    at: OffsetDateTime,
) -> Result<Vec<MatchNumber>> {
    // All matches of a complete edition were played by its end. A match of a cancelled edition may
    // have been played later, for another edition.
    let statement = "
        SELECT u.number FROM unnest($2::bigint[]) AS u (number)
        WHERE EXISTS (
            SELECT FROM editions e
            WHERE e.tournament = $1 AND e.ended_at <= $3 AND e.end_match > u.number
              AND NOT EXISTS (
                  SELECT FROM absences absent
                  WHERE absent.tournament = $1 AND absent.number = u.number
                    AND absent.since <= e.number
                    AND (absent.until IS NULL OR absent.until > e.number))
              AND (e.state = 'complete' OR coalesce((
                  SELECT l.reported_at <= $3 AND u.number < l.number + l.count FROM lots l
                  WHERE l.tournament = $1 AND l.number <= u.number
                  ORDER BY l.number DESC LIMIT 1), false)))";
    sqlx::query_scalar(statement).bind(tournament).bind(numbers).bind(at).fetch_all(db).await
}

/// The last played matches of an entrant with their seats: at most `limit`, from the last 200 000
/// played matches of the edition.
pub async fn last_of(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    entrant: Entrant,
    limit: i64,
) -> Result<Vec<(MatchNumber, Seats)>> {
    let statement = concat!(
        "SELECT m.number, m.seats FROM (
            SELECT r.number FROM results r WHERE ",
        members!("r"),
        " ORDER BY r.number DESC LIMIT 200000
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE tournament = $1 AND number = r.number AND $4 = ANY (seats) OFFSET 0
        ) AS m
        ORDER BY r.number DESC LIMIT $5"
    );
    let query = sqlx::query_as_with(statement, edition.arguments()).bind(entrant.0).bind(limit);
    let rows: Vec<(MatchNumber, Vec<i32>)> = query.fetch_all(db).await?;
    Ok(rows.into_iter().map(|(number, seats)| (number, seats.into())).collect())
}
