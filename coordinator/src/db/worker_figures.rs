//! What workers reported, summed up for organisers. These statements read all results of a
//! tournament: whoever asks takes a turn.

use arbiter_proto::ids::{EditionId, TournamentId, WorkerId};
use arbiter_ranking::residual::Residual;
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// What a worker reported, of what was not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Reported {
    /// The worker.
    #[sqlx(try_from = "i32")]
    pub worker: WorkerId,
    /// Matches.
    pub matches: i64,
    /// Forfeits by the clock in them.
    pub clock_forfeits: i64,
}

/// What each worker reported, in one tournament or in all.
///
/// # Errors
/// If the database fails.
pub async fn reported(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<Reported>, Error> {
    // A forfeit by the clock is stored as 1.
    let statement = "
        SELECT l.worker, count(*) AS matches,
            coalesce(sum(cardinality(array_positions(r.forfeits, 1::smallint))), 0)::bigint
                AS clock_forfeits
        FROM editions e
        JOIN lots l ON l.edition = e.id
        CROSS JOIN LATERAL (
            SELECT forfeits FROM results
            WHERE edition = l.edition AND number >= l.first AND number < l.first + l.count OFFSET 0
        ) AS r
        WHERE ($1::int IS NULL OR e.tournament = $1)
          AND l.state IN ('reported', 'counted') AND NOT l.taken AND l.worker IS NOT NULL
        GROUP BY l.worker ORDER BY l.worker";
    sqlx::query_as(statement).bind(tournament.map(|id| id.0)).fetch_all(db).await
}

/// Matches of a worker in which the same entrants had the same seats, with one kind of outcome.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Outcomes {
    /// The worker.
    #[sqlx(try_from = "i32")]
    pub worker: WorkerId,
    /// The entrants, seat 1 first.
    pub seats: Vec<i32>,
    /// The seat with the greatest first number in its score, from 1; 0 if several have it; -1 if a
    /// bot lost by the clock.
    pub outcome: i32,
    /// How many.
    pub matches: i64,
}

/// What each worker reported of an edition, by who played and what came of it; what was taken over
/// is left out.
///
/// # Errors
/// If the database fails.
pub async fn outcomes(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<Outcomes>, Error> {
    // A forfeit by the clock is stored as 1. The numbers of a seat's score stand together.
    let statement = "
        SELECT l.worker, m.seats, o.outcome, count(*) AS matches
        FROM lots l
        CROSS JOIN LATERAL (
            SELECT number, scores, forfeits FROM results
            WHERE edition = $1 AND number >= l.first AND number < l.first + l.count OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (
            SELECT seats FROM matches WHERE edition = $1 AND number = r.number OFFSET 0
        ) AS m
        CROSS JOIN LATERAL (
            SELECT CASE
                WHEN 1 = ANY (r.forfeits) THEN -1
                WHEN count(*) FILTER (WHERE s.score = s.most) > 1 THEN 0
                ELSE min(s.seat) FILTER (WHERE s.score = s.most)
            END AS outcome
            FROM (
                SELECT seat, score, max(score) OVER () AS most
                FROM (
                    SELECT seat,
                        r.scores[1 + (seat - 1) * cardinality(r.scores) / cardinality(m.seats)]
                            AS score
                    FROM generate_series(1, cardinality(m.seats)) AS seat
                ) AS firsts
            ) AS s
        ) AS o
        WHERE l.edition = $1 AND l.state = 'counted' AND NOT l.taken AND l.worker IS NOT NULL
        GROUP BY l.worker, m.seats, o.outcome
        ORDER BY l.worker, m.seats, o.outcome";
    sqlx::query_as(statement).bind(edition.0).fetch_all(db).await
}

/// A complete edition whose residuals are not reckoned yet, the newest first.
///
/// # Errors
/// If the database fails.
pub async fn unchecked(db: impl PgExecutor<'_>) -> Result<Option<EditionId>, Error> {
    let statement = "
        SELECT e.id FROM editions e
        WHERE e.state = 'complete'
          AND NOT EXISTS (SELECT FROM residual_checks c WHERE c.edition = e.id)
        ORDER BY e.id DESC LIMIT 1";
    let found: Option<i32> = sqlx::query_scalar(statement).fetch_optional(db).await?;
    Ok(found.map(EditionId))
}

/// Takes note of the residuals of an edition: whether nobody was faster. In a transaction.
///
/// # Errors
/// If the database fails.
pub async fn keep_residuals(
    db: &mut sqlx::PgConnection,
    edition: EditionId,
    residuals: &[(WorkerId, Residual)],
    now: OffsetDateTime,
) -> Result<bool, Error> {
    let statement = "
        INSERT INTO residual_checks (edition, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let checked = sqlx::query(statement).bind(edition.0).bind(now).execute(&mut *db).await?;
    if checked.rows_affected() == 0 {
        return Ok(false);
    }
    let statement = "
        INSERT INTO worker_residuals (edition, worker, chi_square, p)
        SELECT $1, u.worker, u.chi_square, u.p
        FROM unnest($2::int[], $3::float8[], $4::float8[]) AS u (worker, chi_square, p)";
    let workers: Vec<_> = residuals.iter().map(|(worker, _)| worker.0).collect();
    let squares: Vec<_> = residuals.iter().map(|(_, residual)| residual.chi_square).collect();
    let ps: Vec<_> = residuals.iter().map(|(_, residual)| residual.p).collect();
    let query = sqlx::query(statement).bind(edition.0).bind(workers).bind(squares);
    query.bind(ps).execute(db).await?;
    Ok(true)
}

/// The least probable residual of each worker, in one tournament or in all.
///
/// # Errors
/// If the database fails.
pub async fn residuals(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<(WorkerId, f64)>, Error> {
    let statement = "
        SELECT r.worker, min(r.p)
        FROM editions e JOIN worker_residuals r ON r.edition = e.id
        WHERE $1::int IS NULL OR e.tournament = $1
        GROUP BY r.worker ORDER BY r.worker";
    let found: Vec<(i32, f64)> =
        sqlx::query_as(statement).bind(tournament.map(|id| id.0)).fetch_all(db).await?;
    Ok(found.into_iter().map(|(worker, p)| (WorkerId(worker), p)).collect())
}

/// How improbable the results of a worker are that is not suspended, in editions that were complete
/// after it was last reinstated.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Unlikely {
    /// The worker.
    #[sqlx(try_from = "i32")]
    pub worker: WorkerId,
    /// The edition.
    pub edition: i32,
    /// The probability.
    pub p: f64,
    /// How many were reckoned in the tournament, of all workers.
    pub tests: i64,
}

/// The most improbable residual of each worker that is below a bound.
///
/// # Errors
/// If the database fails.
pub async fn unlikely(db: impl PgExecutor<'_>, below: f64) -> Result<Vec<Unlikely>, Error> {
    let statement = "
        SELECT DISTINCT ON (w.id) w.id AS worker, r.edition, r.p, (
            SELECT count(*) FROM editions o JOIN worker_residuals u ON u.edition = o.id
            WHERE o.tournament = e.tournament
        ) AS tests
        FROM worker_residuals r
        JOIN editions e ON e.id = r.edition
        JOIN workers w ON w.id = r.worker
        LEFT JOIN suspensions s ON s.worker = w.id
        WHERE r.p < $1 AND (s.at IS NULL OR e.ended_at > s.reinstated_at)
        ORDER BY w.id, r.p";
    sqlx::query_as(statement).bind(below).fetch_all(db).await
}
