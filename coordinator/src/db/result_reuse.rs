//! Reuse of results from earlier editions of a tournament. An edition copies the results of
//! identical matches, and waits for identical matches that are still being played.
//!
//! Two matches are identical if they have the same bots in the same versions and seats, seed key,
//! board, parameters and carried scores. The rules version and the edition's seed must be the same,
//! too: a beacon's value gives later editions another seed. Everything else is the same within a
//! tournament. Only played matches are searched, not reused results, so the work does not grow
//! with the number of editions.
//!
//! If files pass from match to match, that is not enough: see [`super::lots::find_reusable`].

use arbiter_proto::ids::{EditionId, MatchNumber};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};

/// The matches of lots in these states that are identical to matches of edition `$1`, from match
/// `$2` on. A row of `twin` has the numbers of both matches, and the lot. The query searches the
/// editions in `$3`, or all earlier editions.
///
/// Each edition numbers its entrants separately, so the query translates the numbers to those of
/// this edition. The number of a bot that is not in this edition, or has another version there,
/// becomes null. The matches of each lot are read with one index lookup (`LATERAL … OFFSET 0`). The
/// planner chooses the join by seed keys.
macro_rules! twins {
    ($state:literal) => {
        concat!(
            "WITH earlier AS MATERIALIZED (
                SELECT o.edition, array_agg(n.entrant ORDER BY o.entrant) AS entrants
                FROM editions this
                JOIN tournaments t ON t.id = this.tournament
                JOIN editions e ON e.tournament = this.tournament AND e.rules = this.rules
                    AND e.id < this.id AND ($3::int[] IS NULL OR e.id = ANY ($3))
                    AND same_seed(e.number, this.number, t.beacon_from)
                JOIN entrants o ON o.edition = e.id
                JOIN versions was ON was.id = o.version
                LEFT JOIN (
                    SELECT n.bot, n.entrant, v.digest
                    FROM entrants n JOIN versions v ON v.id = n.version WHERE n.edition = $1
                ) AS n ON n.bot = o.bot AND n.digest = was.digest
                WHERE this.id = $1 GROUP BY o.edition
            ), played AS MATERIALIZED (
                SELECT earlier.edition, lot.number AS lot, m.number,
                    m.seed_key, m.board, m.carried, m.params, cardinality(m.seats) AS seats,
                    earlier.entrants[m.seats[1] + 1] AS one,
                    earlier.entrants[m.seats[2] + 1] AS two,
                    earlier.entrants[m.seats[3] + 1] AS three,
                    earlier.entrants[m.seats[4] + 1] AS four
                FROM earlier
                CROSS JOIN LATERAL (
                    SELECT number, first_match, count FROM lots
                    WHERE edition = earlier.edition AND NOT reused AND state IN (",
            $state,
            ") OFFSET 0
                ) AS lot
                CROSS JOIN LATERAL (
                    SELECT * FROM matches
                    WHERE edition = earlier.edition AND state_from IS NULL
                      AND number >= lot.first_match AND number < lot.first_match + lot.count OFFSET 0
                ) AS m
            ), twin AS MATERIALIZED (
                SELECT n.number, p.edition AS source_edition, p.number AS source_number, p.lot
                FROM matches n JOIN played p ON p.seed_key = n.seed_key
                WHERE n.edition = $1 AND n.number >= $2 AND n.state_from IS NULL
                  AND p.seats = cardinality(n.seats)
                  AND p.one = n.seats[1]
                  AND p.two IS NOT DISTINCT FROM n.seats[2]
                  AND p.three IS NOT DISTINCT FROM n.seats[3]
                  AND p.four IS NOT DISTINCT FROM n.seats[4]
                  AND p.board IS NOT DISTINCT FROM n.board
                  AND p.carried IS NOT DISTINCT FROM n.carried
                  AND p.params IS NOT DISTINCT FROM n.params
            )"
        )
    };
}

/// Prepares the planner for the large joins of this transaction: current row counts, and no nested
/// loops.
pub async fn prepare(connection: &mut PgConnection) -> Result<()> {
    let settings = "
        SET LOCAL plan_cache_mode = force_custom_plan;
        SET LOCAL enable_hashjoin = on;
        SET LOCAL enable_nestloop = off;
        SET LOCAL work_mem = '64MB'";
    sqlx::raw_sql(settings).execute(connection).await.map(drop)
}

/// Restores the default planner settings.
pub async fn finish(connection: &mut PgConnection) -> Result<()> {
    let settings = "
        SET LOCAL plan_cache_mode = DEFAULT;
        SET LOCAL enable_hashjoin = DEFAULT;
        SET LOCAL enable_nestloop = DEFAULT;
        SET LOCAL work_mem = DEFAULT";
    sqlx::raw_sql(settings).execute(connection).await.map(drop)
}

/// Copies results of identical matches to the matches of an edition from `first` on, and returns
/// their number. Skips matches that have a result, and void results. With `from`, searches only
/// these editions.
pub async fn results(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    first: MatchNumber,
    from: Option<&[EditionId]>,
) -> Result<u64> {
    let statement = concat!(
        twins!("'reported', 'counted'"),
        " INSERT INTO results (edition, number, wall_ms, level, scores, transcript, forfeits,
            bad_answers, source_edition, source_number)
        SELECT $1, due.number, r.wall_ms, r.level, r.scores, r.transcript, r.forfeits,
            r.bad_answers, due.source_edition, due.source_number
        FROM (
            SELECT DISTINCT ON (twin.number) twin.* FROM twin
            WHERE NOT EXISTS (
                SELECT FROM invalidated_matches v
                WHERE v.edition = twin.source_edition AND v.number = twin.source_number)
              AND NOT EXISTS (
                SELECT FROM results there
                WHERE there.edition = $1 AND there.number = twin.number)
            ORDER BY twin.number, twin.source_edition DESC
        ) AS due
        CROSS JOIN LATERAL (
            SELECT * FROM results
            WHERE edition = due.source_edition AND number = due.source_number OFFSET 0
        ) AS r"
    );
    let query = sqlx::query(statement).bind(edition).bind(first).bind(from);
    Ok(query.execute(db).await?.rows_affected())
}

/// Records the matches of an edition from `first` on that have no result and are identical to a
/// match that is being played for one of the editions `from`. Returns their number.
pub async fn wait(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    first: MatchNumber,
    from: &[EditionId],
) -> Result<u64> {
    let statement = concat!(
        twins!("'leased'"),
        " INSERT INTO pending_reuse (edition, number, source_edition, source_number, source_lot)
        SELECT DISTINCT ON (twin.number)
            $1, twin.number, twin.source_edition, twin.source_number, twin.lot
        FROM twin
        WHERE NOT EXISTS (
            SELECT FROM results there WHERE there.edition = $1 AND there.number = twin.number)
        ORDER BY twin.number, twin.source_edition DESC"
    );
    let query = sqlx::query(statement).bind(edition).bind(first).bind(from);
    Ok(query.execute(db).await?.rows_affected())
}

/// The earlier editions of the same tournament and rules version with matches that may still be
/// played.
pub async fn under_way(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<EditionId>> {
    let statement = "
        SELECT e.id FROM editions this
        JOIN tournaments t ON t.id = this.tournament
        JOIN editions e ON e.tournament = this.tournament AND e.rules = this.rules
            AND e.id < this.id AND same_seed(e.number, this.number, t.beacon_from)
        WHERE this.id = $1 AND (e.state = 'running' OR e.state = 'cancelled' AND EXISTS (
            SELECT FROM lots l WHERE l.edition = e.id AND l.state = 'leased'))";
    sqlx::query_scalar(statement).bind(edition).fetch_all(db).await
}

/// Whether there are earlier editions of the same tournament and rules version.
pub async fn is_possible(db: impl PgExecutor<'_>, edition: EditionId) -> Result<bool> {
    let statement = "
        SELECT EXISTS (
            SELECT FROM editions this
            JOIN tournaments t ON t.id = this.tournament
            JOIN editions e ON e.tournament = this.tournament AND e.rules = this.rules
                AND e.id < this.id AND same_seed(e.number, this.number, t.beacon_from)
            WHERE this.id = $1)";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
}

/// A run of consecutive matches that need not be leased now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Run {
    /// The first match.
    pub first_match: i64,
    /// The number after the last match.
    pub past: i64,
    /// Whether their results were reused. Otherwise they wait for the results of one lot that is
    /// being played.
    pub reused: bool,
}

/// The matches of an edition from `first` on that were reused or wait for a result, in order.
pub async fn runs(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    first: MatchNumber,
) -> Result<Vec<Run>> {
    let statement = "
        SELECT min(number) AS first_match, max(number) + 1 AS past, reused
        FROM (
            SELECT number, true AS reused, NULL::int AS source, NULL::bigint AS lot,
                number - row_number() OVER (ORDER BY number) AS run
            FROM results WHERE edition = $1 AND number >= $2
            UNION ALL
            SELECT number, false, source_edition, source_lot,
                number - row_number() OVER (
                    PARTITION BY source_edition, source_lot ORDER BY number)
            FROM pending_reuse a
            WHERE edition = $1 AND number >= $2 AND NOT EXISTS (
                SELECT FROM results r WHERE r.edition = $1 AND r.number = a.number)
        ) AS each
        GROUP BY reused, source, lot, run ORDER BY first_match";
    sqlx::query_as(statement).bind(edition).bind(first).fetch_all(db).await
}
