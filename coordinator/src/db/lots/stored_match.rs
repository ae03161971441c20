//! Lots whose match may be stored already, in a tournament where bots leave files for later
//! matches.
//!
//! A new edition cannot know with which files its matches begin before the matches before them are
//! reported. So it adds a match wherever one of these differs. When such a match can be played, it
//! is compared with the stored ones: if one of them began with the same files, the added match is
//! the same, and the stored one takes its place.

use arbiter_proto::ids::{LotNumber, MatchNumber, TournamentId};
use sqlx::{FromRow, PgExecutor, Result};

use super::LotState;

/// A lot that can be checked now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct CheckedLot {
    /// The lot, which holds one match.
    pub number: LotNumber,
    /// The stored match that is the same.
    pub stored: Option<MatchNumber>,
}

/// The lots that can be checked now: at most 4096, locked until the transaction ends.
pub async fn find_stored(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<CheckedLot>> {
    let statement = "
        WITH due AS (
            SELECT number FROM lots WHERE tournament = $1 AND state = 'checking'
            ORDER BY number LIMIT 4096 FOR UPDATE SKIP LOCKED
        )
        SELECT due.number, same.number AS stored FROM due
        LEFT JOIN LATERAL (
            SELECT o.number
            FROM matches n
            JOIN tournaments t ON t.id = n.tournament
            JOIN editions this ON this.tournament = n.tournament
                AND this.first_match <= n.number AND n.number < this.end_match
            JOIN matches o ON o.tournament = n.tournament AND o.seed_key = n.seed_key
                AND hash_array_extended(o.seats, o.seed_key)
                    = hash_array_extended(n.seats, n.seed_key)
                AND o.number < n.number AND o.state_from IS NOT NULL
            JOIN editions e ON e.tournament = o.tournament
                AND e.first_match <= o.number AND o.number < e.end_match
                AND e.rules = this.rules AND same_seed(e.number, this.number, t.beacon_from)
            JOIN lots l ON l.tournament = o.tournament AND l.number = o.number
            WHERE n.tournament = $1 AND n.number = due.number
              AND l.state IN ('leased', 'reported', 'counted')
              AND o.seats = n.seats
              AND o.board IS NOT DISTINCT FROM n.board
              AND o.carried IS NOT DISTINCT FROM n.carried
              AND o.params IS NOT DISTINCT FROM n.params
              AND NOT EXISTS (
                  SELECT FROM invalidated_matches v
                  WHERE v.tournament = o.tournament AND v.number = o.number)
              AND initial_state(o.tournament, o.seats, o.state_from)
                  = initial_state(n.tournament, n.seats, n.state_from)
            ORDER BY l.state = 'leased', o.number LIMIT 1
        ) AS same ON true";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}

/// The states of these lots, locked until the transaction ends.
pub async fn lock_lots(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
) -> Result<Vec<(MatchNumber, LotState)>> {
    let statement = "
        SELECT number, state FROM lots WHERE tournament = $1 AND number = ANY ($2)
        ORDER BY number FOR UPDATE";
    sqlx::query_as(statement).bind(tournament).bind(numbers).fetch_all(db).await
}

/// Makes checked lots pending whose matches are not stored.
pub async fn end_check(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[LotNumber],
) -> Result<()> {
    let statement = "
        UPDATE lots SET state = 'pending'
        WHERE tournament = $1 AND number = ANY ($2) AND state IS NOT DISTINCT FROM 'checking'";
    sqlx::query(statement).bind(tournament).bind(numbers).execute(db).await.map(drop)
}

/// Puts stored matches in the place of added ones that are the same: the lots and matches after
/// them refer to the stored match from now on, and the added match is deleted.
pub async fn substitute(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    added: &[LotNumber],
    stored: &[MatchNumber],
) -> Result<()> {
    let statement = "
        WITH same AS MATERIALIZED (
            SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS u (added, stored)
        ), later AS MATERIALIZED (
            SELECT same.added, same.stored, o.after
            FROM same JOIN lot_order o ON o.tournament = $1 AND o.before = same.added
        ), ordered AS (
            INSERT INTO lot_order (tournament, before, after)
            SELECT $1, stored, after FROM later ON CONFLICT DO NOTHING
        ), unordered AS (
            DELETE FROM lot_order o USING (
                SELECT added AS before, after FROM later
                UNION ALL
                SELECT s.before, m.number FROM matches m CROSS JOIN unnest(m.state_from) AS s (before)
                WHERE m.tournament = $1 AND m.number = ANY ($2)
            ) AS gone
            WHERE o.tournament = $1 AND o.before = gone.before AND o.after = gone.after
        ), without_lots AS (
            DELETE FROM lots WHERE tournament = $1 AND number = ANY ($2)
        ), without_matches AS (
            DELETE FROM matches WHERE tournament = $1 AND number = ANY ($2)
        )
        UPDATE matches AS m SET state_from = (
            SELECT array_agg(coalesce(same.stored, s.number) ORDER BY s.seat)
            FROM unnest(m.state_from) WITH ORDINALITY AS s (number, seat)
            LEFT JOIN same ON same.added = s.number)
        WHERE m.tournament = $1 AND m.number = ANY (ARRAY(SELECT after FROM later))";
    sqlx::query(statement).bind(tournament).bind(added).bind(stored).execute(db).await.map(drop)
}
