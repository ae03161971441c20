//! Queries for played matches, with entrants and results.
//!
//! A query reads only the rows that it returns, even in a large edition. It starts from results and
//! looks up each match (`LATERAL … OFFSET 0`). Otherwise the planner may read both tables from the
//! first match of the edition on, to merge them.

use arbiter_proto::ids::{LotNumber, MatchId, MatchNumber, TournamentId};
use arbiter_ranking::Entrant;
use serde_json::Value;
use sqlx::{Acquire, FromRow, PgExecutor, Postgres, Result};
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
    /// When its result was stored. None if it has no lot any more.
    pub reported_at: Option<OffsetDateTime>,
    /// Whether its result is in standings.
    pub is_counted: bool,
}

impl PlayedMatch {
    /// The score of a seat, counted from 0, most important component first.
    pub fn score(&self, seat: usize) -> &[i64] {
        let scores = &self.result.scores;
        let components = scores.len() / self.seats.0.len().max(1);
        scores.chunks(components.max(1)).nth(seat).unwrap_or_default()
    }
}

/// The columns of a match `m` and its result `r` that [`PlayedMatch`] has, the tables and the rest
/// of the statement. The tournament is `$1`.
macro_rules! played {
    ([$($from:expr),+], $rest:expr) => {
        concat!(
            "SELECT m.number, m.seed_key, m.board, m.seats, m.params, r.scores, r.forfeits, r.bad_answers,
                r.transcript, r.wall_ms, r.level::text, lot.reported_at,
                coalesce(lot.state = 'counted', false) AS is_counted ",
            $($from,)+
            " LEFT JOIN LATERAL (
                SELECT l.number + l.count AS end_match, l.state, l.reported_at FROM lots l
                WHERE l.tournament = $1 AND l.number <= r.number ORDER BY l.number DESC LIMIT 1
            ) AS lot ON r.number < lot.end_match ",
            $rest
        )
    };
}

/// The order of a list of matches, and where in it a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cursor {
    /// In the order of their numbers, after this one.
    After(MatchNumber),
    /// The greatest numbers first, before this one.
    Before(MatchNumber),
}

impl Cursor {
    /// All matches in the order of their numbers, or the greatest numbers first.
    pub fn start(newest_first: bool) -> Self {
        if newest_first {
            Self::Before(MatchNumber(i64::MAX))
        } else {
            Self::After(MatchNumber(-1))
        }
    }

    /// The same order, beginning after this match.
    #[must_use]
    pub fn moved_to(self, last: MatchNumber) -> Self {
        match self {
            Self::After(_) => Self::After(last),
            Self::Before(_) => Self::Before(last),
        }
    }

    /// The first number that can be on the page, and the number after the last one.
    fn bounds(self, edition: EditionScope) -> (i64, i64) {
        match self {
            Self::After(MatchNumber(after)) => {
                (edition.from.max(after.saturating_add(1)), edition.end)
            }
            Self::Before(MatchNumber(before)) => (edition.from, edition.end.min(before)),
        }
    }
}

/// Statements that differ in the order of their rows, by the order of a cursor.
macro_rules! ordered {
    ($cursor:expr, $($part:tt)+) => {
        match $cursor {
            Cursor::After(_) => ordered!(@order "", $($part)+),
            Cursor::Before(_) => ordered!(@order " DESC", $($part)+),
        }
    };
    (@order $order:literal, $forfeits:literal) => {
        played!(
            [
                "
                FROM (
                    SELECT * FROM results r WHERE ",
                members!("r"),
                " AND r.number >= $4 AND r.number < $5 ", $forfeits,
                " ORDER BY r.number", $order, " LIMIT $6
                ) AS r
                CROSS JOIN LATERAL (
                    SELECT * FROM matches WHERE tournament = $1 AND number = r.number OFFSET 0
                ) AS m"
            ],
            concat!("ORDER BY r.number", $order)
        )
    };
    (@order $order:literal, of entrants) => {
        played!(
            [
                "
                FROM (
                    SELECT * FROM (
                        SELECT found FROM (
                            SELECT tournament, number AS found FROM matches
                            WHERE seats @> $6 OFFSET 0
                        ) AS m
                        WHERE m.tournament = $1 AND found >= $4 AND found < $5
                        ORDER BY found", $order, " OFFSET 0
                    ) AS f
                    CROSS JOIN LATERAL (
                        SELECT * FROM results r WHERE ",
                members!("r"),
                " AND r.number = f.found AND ($7::integer IS NULL OR r.forfeits IS NOT NULL) OFFSET 0
                    ) AS r
                    WHERE $7::integer IS NULL OR EXISTS (
                        SELECT FROM matches m WHERE m.tournament = $1 AND m.number = r.number
                            AND r.forfeits[array_position(m.seats, $7)] > 0 OFFSET 0)
                    ORDER BY f.found", $order, " LIMIT 1000
                ) AS r
                CROSS JOIN LATERAL (
                    SELECT * FROM matches WHERE tournament = $1 AND number = r.number OFFSET 0
                ) AS m"
            ],
            concat!("ORDER BY r.number", $order)
        )
    };
}

/// The number of matches of a page, if no smaller number is requested.
pub const PAGE: u32 = 1000;

/// A page of the played matches of an edition: at most `limit`. With `forfeits_only`, of those that
/// a seat forfeited.
pub async fn page(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    cursor: Cursor,
    forfeits_only: bool,
    limit: u32,
) -> Result<Vec<PlayedMatch>> {
    let statement = if forfeits_only {
        ordered!(cursor, "AND r.forfeits IS NOT NULL")
    } else {
        ordered!(cursor, "")
    };
    let (from, end) = cursor.bounds(edition);
    let query = sqlx::query_as_with(statement, edition.arguments()).bind(from).bind(end);
    query.bind(i64::from(limit)).fetch_all(db).await
}

/// A page of the played matches of an edition in which all these entrants have seats: at most 1000.
/// With `forfeited_by`, of those that this entrant forfeited.
///
/// An index finds all matches of the entrants, which are then sorted. So it is fast if they have
/// few of the matches; otherwise [`page`] soon comes across them. The condition names only
/// entrants, so that Postgres has no other index to read the matches by. An entrant has one
/// tournament.
pub async fn page_of_entrants(
    db: impl Acquire<'_, Database = Postgres>,
    edition: EditionScope,
    cursor: Cursor,
    entrants: &[Entrant],
    forfeited_by: Option<Entrant>,
) -> Result<Vec<PlayedMatch>> {
    let statement = ordered!(cursor, of entrants);
    let (from, end) = cursor.bounds(edition);
    let entrants: Vec<_> = entrants.iter().map(|entrant| entrant.0).collect();
    let mut transaction = db.begin().await?;
    // Only such a scan can read this kind of index.
    sqlx::query("SET LOCAL enable_bitmapscan = on").execute(&mut *transaction).await?;
    let found = sqlx::query_as_with(statement, edition.arguments())
        .bind(from)
        .bind(end)
        .bind(entrants)
        .bind(forfeited_by.map(|entrant| entrant.0))
        .fetch_all(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(found)
}

/// A match, if it was played.
pub async fn find(db: impl PgExecutor<'_>, id: MatchId) -> Result<Option<PlayedMatch>> {
    let statement = played!(
        ["FROM results r JOIN matches m USING (tournament, number)"],
        "WHERE r.tournament = $1 AND r.number = $2"
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

/// How many of the newest matches [`of_entrants`] reads one by one.
pub const LOG_WINDOW: i64 = 200_000;

/// The matches of a tournament that any of these entrants played, newest first: at most `limit`.
/// With `before`, only matches with lower numbers. With `forfeits`, only matches that one of them
/// forfeited, from the newest `window` matches of the tournament with such numbers.
///
/// The newest `window` matches are read one by one, which soon fills a page if the entrants play in
/// many of them. If the page is not full, the entrants have few of the matches, and an index finds
/// the older ones.
pub async fn of_entrants(
    db: impl Acquire<'_, Database = Postgres>,
    tournament: TournamentId,
    entrants: &[Entrant],
    forfeits: bool,
    limit: u32,
    before: Option<MatchNumber>,
    window: i64,
) -> Result<Vec<PlayedMatch>> {
    if entrants.is_empty() {
        return Ok(Vec::new());
    }
    let entrants: Vec<_> = entrants.iter().map(|entrant| entrant.0).collect();
    let before = before.map_or(i64::MAX, |number| number.0);
    let limit = i64::from(limit);
    let mut transaction = db.begin().await?;
    let query = sqlx::query_as(IN_WINDOW).bind(tournament).bind(&entrants);
    let query = query.bind(forfeits).bind(before).bind(limit).bind(window);
    let mut found: Vec<PlayedMatch> = query.fetch_all(&mut *transaction).await?;
    let missing = limit - i64::try_from(found.len()).unwrap_or(limit);
    if missing > 0 && !forfeits {
        let statement = "
            SELECT number FROM results WHERE tournament = $1 AND number < $2
            ORDER BY number DESC OFFSET $3 LIMIT 1";
        let query = sqlx::query_scalar(statement).bind(tournament).bind(before).bind(window);
        let newest_older: Option<i64> = query.fetch_optional(&mut *transaction).await?;
        if let Some(newest_older) = newest_older {
            // Only such a scan can read this kind of index.
            sqlx::query("SET LOCAL enable_bitmapscan = on").execute(&mut *transaction).await?;
            let query = sqlx::query_as(BY_INDEX).bind(tournament).bind(&entrants);
            let query = query.bind(newest_older).bind(missing);
            found.extend(query.fetch_all(&mut *transaction).await?);
        }
    }
    transaction.commit().await?;
    Ok(found)
}

/// The matches of these entrants among the newest matches.
const IN_WINDOW: &str = played!(
    ["
        FROM (
            SELECT * FROM results WHERE tournament = $1 AND number < $4
            ORDER BY number DESC LIMIT $6
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches
            WHERE tournament = $1 AND number = r.number AND seats && $2::int[] OFFSET 0
        ) AS m"],
    "
        WHERE NOT $3 OR EXISTS (
            SELECT FROM unnest(m.seats, r.forfeits) AS s (entrant, forfeit)
            WHERE s.entrant = ANY ($2) AND s.forfeit > 0)
        ORDER BY r.number DESC LIMIT $5"
);

/// The matches of these entrants up to a number. The condition on the seats is alone, as for
/// [`page_of_entrants`].
const BY_INDEX: &str = played!(
    ["
        FROM (
            SELECT r.* FROM (
                SELECT found FROM (
                    SELECT tournament, number AS found FROM matches
                    WHERE seats && $2::int[] OFFSET 0
                ) AS m
                WHERE m.tournament = $1 AND found <= $3
                ORDER BY found DESC OFFSET 0
            ) AS f
            CROSS JOIN LATERAL (
                SELECT * FROM results WHERE tournament = $1 AND number = f.found OFFSET 0
            ) AS r
            ORDER BY f.found DESC LIMIT $4
        ) AS r
        CROSS JOIN LATERAL (
            SELECT * FROM matches WHERE tournament = $1 AND number = r.number OFFSET 0
        ) AS m"],
    "ORDER BY r.number DESC"
);

/// Which of these matches of a tournament had been played by this time, in an edition that had
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
