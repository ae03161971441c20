//! Checks before a lot is leased whether an earlier edition has played its matches.
//!
//! In a tournament where bot state passes from match to match, a match can be compared with an
//! earlier one only after the matches before it are reported. Only then its initial state is known.
//! In other tournaments a lot is checked if its matches are being played for a replaced edition.

use arbiter_proto::ids::{EditionId, LotNumber, MatchNumber};
use sqlx::{FromRow, PgExecutor, Result};

/// A lot whose results may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct ReuseCandidate {
    /// The lot.
    pub number: LotNumber,
    /// Its first match.
    pub first_match: MatchNumber,
    /// The number of its matches.
    pub count: i32,
    /// Whether its matches were played in an earlier edition.
    pub played: bool,
    /// Whether they are being played now, so the result is not known yet.
    pub leased: bool,
    /// The earlier edition, if `pending_reuse` does not name it.
    pub source_edition: Option<i32>,
    /// The match in that edition.
    pub source_number: Option<i64>,
    /// Whether other lots wait for this one.
    pub has_dependents: bool,
}

/// Finds the lots of an edition whose reuse can be decided now: at most 4096, locked until the
/// transaction ends. `chained` says whether bot state passes from match to match.
pub async fn find_reusable(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    chained: bool,
) -> Result<Vec<ReuseCandidate>> {
    // In a chain each lot has one match, and the number of that match.
    let chain = "
        WITH due AS (
            SELECT number, first_match, count, has_dependents FROM lots
            WHERE edition = $1 AND state = 'checking_reuse'
            ORDER BY number LIMIT 4096 FOR UPDATE SKIP LOCKED
        )
        SELECT due.*, found.number IS NOT NULL AND NOT found.leased AS played,
            coalesce(found.leased, false) AS leased,
            found.edition AS source_edition, found.number AS source_number
        FROM due
        LEFT JOIN LATERAL (
            SELECT o.edition, o.number, r.number IS NULL AS leased
            FROM matches n
            JOIN editions this ON this.id = n.edition
            JOIN tournaments t ON t.id = this.tournament
            JOIN matches o ON o.seed_key = n.seed_key AND o.state_from IS NOT NULL
                AND o.edition < n.edition
            JOIN editions e ON e.id = o.edition AND e.tournament = this.tournament
                AND e.rules = this.rules
                AND same_seed(e.number, this.number, t.beacon_from)
            JOIN lots l ON l.edition = o.edition AND l.number = o.number
            LEFT JOIN results r ON r.edition = o.edition AND r.number = o.number
            WHERE n.edition = $1 AND n.number = due.first_match
              AND r.source_edition IS NULL AND (r.number IS NOT NULL OR l.state = 'leased')
              AND o.board IS NOT DISTINCT FROM n.board
              AND o.carried IS NOT DISTINCT FROM n.carried
              AND o.params IS NOT DISTINCT FROM n.params
              AND NOT EXISTS (
                  SELECT FROM invalidated_matches v WHERE v.edition = o.edition AND v.number = o.number)
              AND seat_programs(o.edition, o.seats) = seat_programs(n.edition, n.seats)
              AND initial_state(o.edition, o.seats, o.state_from)
                  = initial_state(n.edition, n.seats, n.state_from)
            ORDER BY r.number IS NULL, o.edition DESC LIMIT 1
        ) AS found ON true";
    let awaited = "
        WITH due AS (
            SELECT number, first_match, count, has_dependents FROM lots
            WHERE edition = $1 AND state = 'checking_reuse'
            ORDER BY number LIMIT 4096 FOR UPDATE SKIP LOCKED
        )
        SELECT due.*, coalesce(l.state IN ('reported', 'counted'), false) AS played,
            coalesce(l.state = 'leased', false) AS leased,
            NULL::int AS source_edition, NULL::bigint AS source_number
        FROM due
        LEFT JOIN pending_reuse a ON a.edition = $1 AND a.number = due.first_match
        LEFT JOIN lots l ON l.edition = a.source_edition AND l.number = a.source_lot";
    let statement = if chained { chain } else { awaited };
    let candidates: Vec<ReuseCandidate> =
        sqlx::query_as(statement).bind(edition).fetch_all(db).await?;
    Ok(candidates.into_iter().filter(|lot| lot.played || !lot.leased).collect())
}

/// Ends the reuse check of lots that [`find_reusable`] locked: they become reported or pending.
pub async fn finish_reuse_check(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    candidates: &[ReuseCandidate],
) -> Result<()> {
    let statement = "
        UPDATE lots AS l
        SET state = CASE WHEN u.played THEN 'reported' ELSE 'pending' END::lot_state,
            reused = u.played
        FROM (
            SELECT * FROM unnest($2::bigint[], $3::boolean[]) AS u (number, played)
            ORDER BY number
        ) AS u
        WHERE l.edition = $1 AND l.number = u.number AND l.state IS NOT DISTINCT FROM 'checking_reuse'";
    let (numbers, played): (Vec<_>, Vec<_>) =
        candidates.iter().map(|lot| (lot.number, lot.played)).unzip();
    sqlx::query(statement).bind(edition).bind(numbers).bind(played).execute(db).await.map(drop)
}

/// Marks lots as not played if one of their earlier matches is void. All matches of such a lot are
/// played.
pub async fn exclude_void(
    connection: &mut sqlx::PgConnection,
    edition: EditionId,
    candidates: &mut [ReuseCandidate],
) -> Result<()> {
    let statement = "
        SELECT u.number FROM unnest($2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::bigint[])
            AS u (number, first_match, count, source_edition, source_number)
        WHERE EXISTS (
            SELECT FROM invalidated_matches v
            WHERE v.edition = u.source_edition AND v.number = u.source_number
        ) OR EXISTS (
            SELECT FROM pending_reuse a
            JOIN invalidated_matches v ON v.edition = a.source_edition AND v.number = a.source_number
            WHERE u.source_number IS NULL
              AND a.edition = $1 AND a.number >= u.first_match AND a.number < u.first_match + u.count)";
    let played: Vec<_> = candidates.iter().filter(|lot| lot.played).collect();
    let void: Vec<LotNumber> = sqlx::query_scalar(statement)
        .bind(edition)
        .bind(played.iter().map(|lot| lot.number).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.first_match).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.count).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.source_edition).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.source_number).collect::<Vec<_>>())
        .fetch_all(connection)
        .await?;
    for lot in candidates.iter_mut().filter(|lot| void.contains(&lot.number)) {
        lot.played = false;
    }
    Ok(())
}

/// Copies the results and bot state of lots whose matches an earlier edition played.
pub async fn copy_results(
    connection: &mut sqlx::PgConnection,
    edition: EditionId,
    played: &[ReuseCandidate],
) -> Result<()> {
    let sources = "
        WITH due AS (
            SELECT u.first_match AS number, u.source_edition, u.source_number
            FROM unnest($2::bigint[], $3::int[], $4::int[], $5::bigint[])
                AS u (first_match, count, source_edition, source_number)
            WHERE u.source_number IS NOT NULL
            UNION ALL
            SELECT a.number, a.source_edition, a.source_number
            FROM unnest($2::bigint[], $3::int[], $4::int[], $5::bigint[])
                AS u (first_match, count, source_edition, source_number)
            CROSS JOIN LATERAL (
                SELECT * FROM pending_reuse
                WHERE edition = $1 AND number >= u.first_match AND number < u.first_match + u.count OFFSET 0
            ) AS a
            WHERE u.source_number IS NULL
        ), reused AS (
            INSERT INTO bot_state (edition, number, seat, digest)
            SELECT $1, due.number, f.seat, f.digest
            FROM due JOIN bot_state f ON f.edition = due.source_edition
                AND f.number = due.source_number
        )
        INSERT INTO results (edition, number, wall_ms, level, scores, transcript, forfeits,
            bad_answers, source_edition, source_number)
        SELECT $1, due.number, r.wall_ms, r.level, r.scores, r.transcript, r.forfeits,
            r.bad_answers, due.source_edition, due.source_number
        FROM due JOIN results r ON r.edition = due.source_edition AND r.number = due.source_number";
    sqlx::query(sources)
        .bind(edition)
        .bind(played.iter().map(|lot| lot.first_match).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.count).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.source_edition).collect::<Vec<_>>())
        .bind(played.iter().map(|lot| lot.source_number).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map(drop)
}
