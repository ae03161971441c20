//! Statistics of workers' reports, for organisers. These statements read all results of a
//! tournament, so callers run one at a time.

use std::collections::BTreeMap;

use arbiter_proto::ids::{EditionId, TournamentId, VersionId, WorkerId};
use arbiter_ranking::residual::{Moments, Residual, WorkerSample};
use sqlx::postgres::PgRow;
use sqlx::{Error, FromRow, PgConnection, PgExecutor, Result, Row as _};
use time::OffsetDateTime;

/// The reports of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct ReportCounts {
    /// The worker.
    pub worker: WorkerId,
    /// Number of matches.
    pub matches: i64,
    /// Number of time losses in them.
    pub clock_forfeits: i64,
}

/// The reports of each worker in one tournament or in all tournaments.
pub async fn report_counts(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<ReportCounts>> {
    // A forfeit by the clock is stored as 1.
    let statement = "
        SELECT l.worker, count(*) AS matches,
            coalesce(sum(cardinality(array_positions(r.forfeits, 1::smallint))), 0)::bigint
                AS clock_forfeits
        FROM tournaments t
        JOIN lots l ON l.tournament = t.id
        CROSS JOIN LATERAL (
            SELECT forfeits FROM results
            WHERE tournament = t.id AND number >= l.number AND number < l.number + l.count OFFSET 0
        ) AS r
        WHERE ($1::int IS NULL OR t.id = $1)
          AND l.state IN ('reported', 'counted') AND l.worker IS NOT NULL
        GROUP BY l.worker ORDER BY l.worker";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// A quantity that is compared between workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Whether this version wins more or less often than on other workers.
    Wins(VersionId),
    /// Whether this version loses by the clock more or less often.
    ClockForfeits(VersionId),
    /// Whether this seat, from 1, wins more or less often.
    Seat(i32),
    /// Whether any bot loses by the clock more or less often.
    AllClockForfeits,
}

impl Question {
    fn read(kind: &str, subject: i32) -> Result<Self> {
        match kind {
            "wins" => Ok(Self::Wins(VersionId(subject))),
            "clock" => Ok(Self::ClockForfeits(VersionId(subject))),
            "seat" => Ok(Self::Seat(subject)),
            "all clocks" => Ok(Self::AllClockForfeits),
            other => Err(Error::Decode(format!("unknown question {other:?}").into())),
        }
    }
}

/// The lots that were reported for the edition `$1`, or for the editions that it replaced since the
/// last complete one, as a table `reported`.
macro_rules! reported {
    () => {
        "span AS (
            SELECT this.tournament, coalesce(this.ended_at, 'infinity') AS until, coalesce((
                SELECT max(last.ended_at) FROM editions last
                WHERE last.tournament = this.tournament AND last.state = 'complete'
                  AND last.number < this.number), '-infinity') AS since
            FROM editions this WHERE this.id = $1
        ), reported AS (
            SELECT tournament, number, count, worker FROM lots
            WHERE tournament = (SELECT tournament FROM span)
              AND state IN ('reported', 'counted') AND worker IS NOT NULL
              AND reported_at >= (SELECT since FROM span)
              AND reported_at <= (SELECT until FROM span)
        )"
    };
}

/// The statement of [`samples`]: the points and time losses of each seat of each match, the part
/// explained by seats, boards and opponents, the sums of each lot, and their moments over a
/// worker's lots.
const SAMPLES: &str = concat!(
    "WITH ",
    reported!(),
    ", played AS MATERIALIZED (
        SELECT l.worker, l.number AS lot, r.number, s.seat, m.seats[s.seat] AS version, m.board,
            cardinality(m.seats) AS size,
            coalesce(r.forfeits[s.seat] = 1, false)::int::float8 AS late,
            r.scores[1 + (s.seat - 1) * cardinality(r.scores) / cardinality(m.seats)] AS score
        FROM reported l
        CROSS JOIN LATERAL (
            SELECT number, scores, forfeits FROM results
            WHERE tournament = l.tournament AND number >= l.number AND number < l.number + l.count
            OFFSET 0
        ) AS r
        CROSS JOIN LATERAL (
            SELECT seats, board FROM matches
            WHERE tournament = l.tournament AND number = r.number AND state_from IS NULL OFFSET 0
        ) AS m
        CROSS JOIN LATERAL generate_series(1, cardinality(m.seats)) AS s (seat)
        WHERE (hashint8extended(l.number, $2) & 9223372036854775807) % $3 = 0
          AND NOT EXISTS (
            SELECT FROM invalidated_matches v
            WHERE v.tournament = l.tournament AND v.number = r.number)
    ), best AS (
        SELECT *, max(score) OVER (PARTITION BY number) AS most FROM played
    ), won AS MATERIALIZED (
        SELECT *, CASE WHEN score < most THEN 0.0::float8 ELSE 1.0::float8
            / count(*) FILTER (WHERE score = most) OVER (PARTITION BY number)
            END AS points
        FROM best
    ), lane AS (
        SELECT seat, board, size, avg(points) AS points FROM won GROUP BY seat, board, size
    ), bot AS (
        SELECT version, avg(points - 1.0 / size) AS strength FROM won GROUP BY version
    ), share AS MATERIALIZED (
        SELECT won.worker, won.lot, won.seat, won.version, won.late,
            won.points - lane.points AS of_seat,
            won.points - lane.points + (
                sum(bot.strength) OVER (PARTITION BY won.number) - bot.strength
            ) / greatest(won.size - 1, 1) AS of_bot
        FROM won
        JOIN bot ON bot.version = won.version
        JOIN lane ON lane.seat = won.seat AND lane.size = won.size
            AND lane.board IS NOT DISTINCT FROM won.board
    ), sums AS (
        SELECT 'wins' AS kind, version AS subject, worker, lot,
            count(*)::float8 AS n, sum(of_bot) AS x
        FROM share GROUP BY version, worker, lot
        UNION ALL
        SELECT 'clock', version, worker, lot, count(*), sum(late)
        FROM share GROUP BY version, worker, lot
        UNION ALL
        SELECT 'seat', seat, worker, lot, count(*), sum(of_seat)
        FROM share GROUP BY seat, worker, lot
        UNION ALL
        SELECT 'all clocks', 0, worker, lot, count(*), sum(late)
        FROM share GROUP BY worker, lot
    )
    SELECT kind, subject, worker, count(*)::float8 AS lots, sum(n) AS count,
        sum(n * n) AS count_squares, sum(x) AS total, sum(x * x) AS total_squares,
        sum(n * x) AS products, max(n) AS most_count, min(x) AS least, max(x) AS greatest
    FROM sums GROUP BY kind, subject, worker
    ORDER BY kind, subject, worker"
);

/// The samples of each worker for each question, from the lots that were reported for an edition or
/// for the editions that it replaced since the last complete one. Matches that start with files
/// from earlier matches are left out, because bots that learn change with time. Void matches are
/// left out, too.
///
/// In a large edition only a random sample of lots is read, with about `limit` matches of the
/// edition. This is enough to show differences, and more would delay urgent work of the database.
/// `salt` selects the sample, so that no worker can predict it.
///
/// A bot wins 1 / w if w bots share the greatest first component of the score. Two values are
/// subtracted: the mean of its seat on its board, and the expectation from the means of its
/// opponents. Then opponents and seats do not influence the differences between lots.
pub async fn samples(
    db: &mut PgConnection,
    edition: EditionId,
    salt: i64,
    limit: i64,
) -> Result<Vec<WorkerSample<WorkerId, Question>>> {
    let statement =
        concat!("WITH ", reported!(), " SELECT coalesce(sum(count), 0)::bigint FROM reported");
    let played: i64 = sqlx::query_scalar(statement).bind(edition).fetch_one(&mut *db).await?;
    let one_in = (played / limit).max(1);
    // A forfeit by the clock is stored as 1. The components of a seat's score are adjacent.
    let query = sqlx::query(SAMPLES).bind(edition).bind(salt).bind(one_in);
    let rows = query.fetch_all(db).await?;
    rows.iter().map(sample).collect()
}

fn sample(row: &PgRow) -> Result<WorkerSample<WorkerId, Question>> {
    let kind: String = row.try_get("kind")?;
    let moments = Moments {
        lots: row.try_get("lots")?,
        count: row.try_get("count")?,
        count_squares: row.try_get("count_squares")?,
        total: row.try_get("total")?,
        total_squares: row.try_get("total_squares")?,
        products: row.try_get("products")?,
        max_count: row.try_get("most_count")?,
        min: row.try_get("least")?,
        max: row.try_get("greatest")?,
    };
    let question = Question::read(&kind, row.try_get("subject")?)?;
    Ok(WorkerSample { worker: row.try_get("worker")?, question, moments })
}

/// The newest complete edition whose residuals are not computed yet. While any edition is running,
/// only editions that ended before `before`.
pub async fn unchecked(
    db: impl PgExecutor<'_>,
    before: OffsetDateTime,
) -> Result<Option<EditionId>> {
    let statement = "
        SELECT e.id FROM editions e
        WHERE e.state = 'complete'
          AND NOT EXISTS (SELECT FROM residual_checks c WHERE c.edition = e.id)
          AND (e.ended_at < $1
               OR NOT EXISTS (SELECT FROM editions o WHERE o.state = 'running'))
        ORDER BY e.id DESC LIMIT 1";
    let query = sqlx::query_scalar(statement).bind(before);
    query.fetch_optional(db).await
}

/// Stores the residuals of an edition. Returns `false` if another coordinator has already stored
/// them. Call it in a transaction.
pub async fn insert_residuals(
    db: &mut PgConnection,
    edition: EditionId,
    residuals: &BTreeMap<WorkerId, Residual<Question>>,
    now: OffsetDateTime,
) -> Result<bool> {
    let statement = "
        INSERT INTO residual_checks (edition, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let result = sqlx::query(statement).bind(edition).bind(now).execute(&mut *db).await?;
    if result.rows_affected() == 0 {
        return Ok(false);
    }
    let statement = "
        INSERT INTO worker_residuals (edition, worker, chi_square, p, is_ambiguous)
        SELECT $1, u.worker, u.chi_square, u.p, u.is_ambiguous
        FROM unnest($2::int[], $3::float8[], $4::float8[], $5::boolean[])
            AS u (worker, chi_square, p, is_ambiguous)";
    let workers: Vec<_> = residuals.keys().copied().collect();
    let squares: Vec<_> = residuals.values().map(|residual| residual.chi_square).collect();
    let ps: Vec<_> = residuals.values().map(Residual::p).collect();
    let ambiguous: Vec<_> = residuals.values().map(|residual| residual.is_ambiguous).collect();
    let query = sqlx::query(statement).bind(edition).bind(workers).bind(squares);
    query.bind(ps).bind(ambiguous).execute(db).await?;
    Ok(true)
}

/// The probability of the least probable residual of each worker, in one tournament or in all. It
/// is corrected for the number of residuals in the tournament (Bonferroni).
pub async fn residuals(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<(WorkerId, f64)>> {
    let statement = "
        SELECT worker, min(least(p * tests, 1))
        FROM (
            SELECT r.worker, r.p, count(*) OVER (PARTITION BY e.tournament) AS tests
            FROM editions e JOIN worker_residuals r ON r.edition = e.id
            WHERE $1::int IS NULL OR e.tournament = $1
        ) AS r
        GROUP BY worker ORDER BY worker";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// An improbable residual of a worker. Three things are left out: suspended workers, editions that
/// ended before the worker was last reinstated, and ambiguous residuals. A residual is ambiguous if
/// it is unclear which of two workers is wrong.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct ImprobableResidual {
    /// The worker.
    pub worker: WorkerId,
    /// The name of the tournament.
    pub tournament: String,
    /// The number of the edition in its tournament.
    pub edition: i32,
    /// The probability.
    pub p: f64,
    /// The number of residuals of all workers in the tournament.
    pub tests: i64,
}

/// The most improbable residual of each worker, if its probability is less than `below`.
pub async fn improbable_residuals(
    db: impl PgExecutor<'_>,
    below: f64,
) -> Result<Vec<ImprobableResidual>> {
    let statement = "
        SELECT DISTINCT ON (w.id) w.id AS worker, t.name AS tournament, e.number AS edition, r.p, (
            SELECT count(*) FROM editions o JOIN worker_residuals u ON u.edition = o.id
            WHERE o.tournament = e.tournament
        ) AS tests
        FROM worker_residuals r
        JOIN editions e ON e.id = r.edition
        JOIN tournaments t ON t.id = e.tournament
        JOIN workers w ON w.id = r.worker
        LEFT JOIN suspensions s ON s.worker = w.id
        WHERE r.p < $1 AND NOT r.is_ambiguous AND (s.at IS NULL OR e.ended_at > s.reinstated_at)
        ORDER BY w.id, r.p";
    sqlx::query_as(statement).bind(below).fetch_all(db).await
}
