//! Cancellation of lots, and lots for matches that are needed again.

use arbiter_proto::ids::{EditionId, LotNumber, MatchNumber, TournamentId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};

use super::LotState;

/// Cancels the lots of a tournament that are not reported yet, and returns their number. The caller
/// has locked the row of its running edition, so no lot is leased meanwhile.
pub async fn cancel(connection: &mut PgConnection, tournament: TournamentId) -> Result<u64> {
    let statement = "
        WITH open AS (
            SELECT number FROM lots WHERE tournament = $1 AND state = 'leased'
            ORDER BY number FOR UPDATE
        )
        UPDATE lots AS l SET state = 'cancelled', deadline = NULL
        FROM open WHERE l.tournament = $1 AND l.number = open.number";
    let leased = sqlx::query(statement).bind(tournament).execute(&mut *connection).await?;
    let statement = "
        WITH open AS (
            SELECT number FROM lots
            WHERE tournament = $1
              AND state IN ('blocked', 'checking', 'pending', 'delayed', 'aside')
            ORDER BY number FOR UPDATE
        )
        UPDATE lots AS l SET state = 'cancelled', not_before = NULL
        FROM open WHERE l.tournament = $1 AND l.number = open.number";
    let others = sqlx::query(statement).bind(tournament).execute(&mut *connection).await?;
    Ok(leased.rows_affected() + others.rows_affected())
}

/// Cancels the pending lots of a tournament without an open edition, and returns their number.
/// Such lots remain if a concurrent transaction returned or expired their leases while the edition
/// was cancelled.
pub async fn cancel_returned(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<u64> {
    let statement = "
        WITH open AS (
            SELECT number FROM lots WHERE tournament = $1 AND state = 'pending'
            ORDER BY number FOR UPDATE SKIP LOCKED
        )
        UPDATE lots AS l SET state = 'cancelled'
        FROM open WHERE l.tournament = $1 AND l.number = open.number AND NOT EXISTS (
            SELECT FROM editions e WHERE e.tournament = $1 AND e.state IN ('planning', 'running'))";
    Ok(sqlx::query(statement).bind(tournament).execute(db).await?.rows_affected())
}

/// A lot with a match that no edition needs any more.
#[derive(Clone, Copy, Debug, FromRow)]
struct AffectedLot {
    number: LotNumber,
    count: i32,
    expected_ms: i32,
    score_len: i16,
    state: LotState,
}

/// Consecutive matches that need a lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: i64,
    count: i32,
    expected_ms: i32,
    score_len: i16,
}

impl AffectedLot {
    /// The runs of its matches that are still needed. `gone` is in order.
    fn needed_runs(&self, gone: &[MatchNumber]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for number in self.number.0..self.number.0 + i64::from(self.count) {
            if gone.binary_search(&MatchNumber(number)).is_ok() {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.first + i64::from(run.count) == number => run.count += 1,
                _ => {
                    let score_len = self.score_len;
                    runs.push(Run { first: number, count: 1, expected_ms: 0, score_len });
                }
            }
        }
        for run in &mut runs {
            let share = i64::from(self.expected_ms) * i64::from(run.count) / i64::from(self.count);
            run.expected_ms = i32::try_from(share).expect("it is a part of an i32");
        }
        runs
    }
}

/// Takes matches that no edition needs any more out of the queue. `gone` is in order. Leased lots
/// are cancelled only if none of their matches is needed; other lots shrink to the needed ones.
///
/// An edition `keeps` its right to matches between its entrants that are being played.
pub async fn drop_matches(
    connection: &mut PgConnection,
    tournament: TournamentId,
    gone: &[MatchNumber],
    keeps: Option<EditionId>,
) -> Result<()> {
    let mut cancelled = Vec::new();
    let mut needed: Vec<Run> = Vec::new();
    let mut gone_leased = gone.to_vec();
    if let Some(edition) = keeps {
        let kept = between_entrants(&mut *connection, tournament, gone, edition).await?;
        gone_leased.retain(|number| kept.binary_search(number).is_err());
    }
    for (leased, gone) in [(true, &*gone_leased), (false, gone)] {
        for lot in affected_lots(connection, tournament, gone, leased).await? {
            let runs = lot.needed_runs(gone);
            if leased && !runs.is_empty() {
                continue;
            }
            cancelled.push(lot.number);
            // Only a pending lot has several matches.
            debug_assert!(runs.is_empty() || lot.state == LotState::Pending);
            needed.extend(runs);
        }
    }
    let statement = "
        UPDATE lots SET state = 'cancelled', deadline = NULL, not_before = NULL
        WHERE tournament = $1 AND number = ANY ($2)";
    sqlx::query(statement).bind(tournament).bind(&cancelled).execute(&mut *connection).await?;
    insert_runs(connection, tournament, &needed).await
}

/// The matches among these in which only entrants of the edition play, in order.
async fn between_entrants(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
    edition: EditionId,
) -> Result<Vec<MatchNumber>> {
    let statement = "
        SELECT number FROM matches
        WHERE tournament = $1 AND number = ANY ($2)
          AND seats <@ (SELECT array_agg(entrant) FROM entrants WHERE edition = $3)
        ORDER BY number";
    sqlx::query_scalar(statement).bind(tournament).bind(numbers).bind(edition).fetch_all(db).await
}

/// The matches in open lots that the newest edition does not have, in order.
pub async fn absent_in_queue(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<MatchNumber>> {
    let statement = "
        SELECT a.number FROM lots l
        CROSS JOIN LATERAL (
            SELECT number FROM absences
            WHERE tournament = $1 AND until IS NULL
              AND number >= l.number AND number < l.number + l.count OFFSET 0
        ) AS a
        WHERE l.tournament = $1
          AND l.state IN ('blocked', 'checking', 'pending', 'leased', 'delayed', 'aside')
        ORDER BY a.number";
    sqlx::query_scalar(statement).bind(tournament).fetch_all(db).await
}

/// The matches among these whose results were added to standings, in order.
pub async fn counted(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    numbers: &[MatchNumber],
) -> Result<Vec<MatchNumber>> {
    let statement = "
        SELECT u.number FROM unnest($2::bigint[]) AS u (number)
        CROSS JOIN LATERAL (
            SELECT number, count, state FROM lots WHERE tournament = $1 AND number <= u.number
            ORDER BY number DESC LIMIT 1
        ) AS l
        WHERE l.state = 'counted' AND u.number < l.number + l.count ORDER BY u.number";
    sqlx::query_scalar(statement).bind(tournament).bind(numbers).fetch_all(db).await
}

/// The open lots with any of these matches, locked until the transaction ends.
async fn affected_lots(
    connection: &mut PgConnection,
    tournament: TournamentId,
    gone: &[MatchNumber],
    leased: bool,
) -> Result<Vec<AffectedLot>> {
    let statement = "
        WITH affected AS MATERIALIZED (
            SELECT DISTINCT l.number
            FROM unnest($2::bigint[]) AS gone (number)
            CROSS JOIN LATERAL (
                SELECT number, count, state FROM lots
                WHERE tournament = $1 AND number <= gone.number ORDER BY number DESC LIMIT 1
            ) AS l
            WHERE gone.number < l.number + l.count
              AND CASE WHEN $3 THEN l.state = 'leased'
                  ELSE l.state IN ('blocked', 'checking', 'pending', 'delayed', 'aside') END
        )
        SELECT l.number, l.count, l.expected_ms, l.score_len, l.state
        FROM lots l JOIN affected USING (number)
        WHERE l.tournament = $1
          AND CASE WHEN $3 THEN l.state = 'leased'
              ELSE l.state IN ('blocked', 'checking', 'pending', 'delayed', 'aside') END
        ORDER BY l.number FOR UPDATE OF l";
    sqlx::query_as(statement).bind(tournament).bind(gone).bind(leased).fetch_all(connection).await
}

/// Shrinks these pending lots to the matches that the newest edition needs.
pub async fn drop_absent(
    connection: &mut PgConnection,
    tournament: TournamentId,
    lots: &[LotNumber],
) -> Result<()> {
    let statement = "
        SELECT a.number FROM lots l
        JOIN absences a ON a.tournament = $1 AND a.until IS NULL
            AND a.number >= l.number AND a.number < l.number + l.count
        WHERE l.tournament = $1 AND l.number = ANY ($2) AND l.state = 'pending' ORDER BY a.number";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(lots);
    let gone: Vec<MatchNumber> = query.fetch_all(&mut *connection).await?;
    match &*gone {
        [] => Ok(()),
        gone => drop_matches(connection, tournament, gone, None).await,
    }
}

/// Puts matches without a result into the queue again, if no open lot has them. `numbers` is in
/// order.
pub async fn enqueue(
    connection: &mut PgConnection,
    tournament: TournamentId,
    numbers: &[MatchNumber],
    expected_ms: i32,
    score_len: i16,
) -> Result<()> {
    let statement = "
        SELECT u.number FROM unnest($2::bigint[]) AS u (number)
        LEFT JOIN LATERAL (
            SELECT number, count, state FROM lots
            WHERE tournament = $1 AND number <= u.number ORDER BY number DESC LIMIT 1
        ) AS l ON true
        WHERE (u.number < l.number + l.count AND l.state <> 'cancelled') IS NOT TRUE
        ORDER BY u.number";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(numbers);
    let missing: Vec<MatchNumber> = query.fetch_all(&mut *connection).await?;
    let runs: Vec<_> = missing
        .into_iter()
        .map(|number| Run { first: number.0, count: 1, expected_ms, score_len })
        .collect();
    insert_runs(connection, tournament, &runs).await
}

/// Adds pending lots. A cancelled lot with the same first match is used again, so that its leases
/// keep different numbers.
async fn insert_runs(
    connection: &mut PgConnection,
    tournament: TournamentId,
    runs: &[Run],
) -> Result<()> {
    let statement = "
        INSERT INTO lots AS l (tournament, number, count, expected_ms, score_len)
        SELECT $1, u.* FROM unnest($2::bigint[], $3::int[], $4::int[], $5::smallint[]) AS u
        ORDER BY 2
        ON CONFLICT (tournament, number) DO UPDATE SET count = excluded.count,
            expected_ms = excluded.expected_ms, state = 'pending', faults = 0, blockers = 0
        WHERE l.state = 'cancelled'";
    if runs.is_empty() {
        return Ok(());
    }
    sqlx::query(statement)
        .bind(tournament)
        .bind(runs.iter().map(|run| run.first).collect::<Vec<_>>())
        .bind(runs.iter().map(|run| run.count).collect::<Vec<_>>())
        .bind(runs.iter().map(|run| run.expected_ms).collect::<Vec<_>>())
        .bind(runs.iter().map(|run| run.score_len).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_shrinks_to_the_matches_that_are_needed() {
        let lot = AffectedLot {
            number: LotNumber(10),
            count: 5,
            expected_ms: 50,
            score_len: 2,
            state: LotState::Pending,
        };
        let runs = |gone: &[i64]| {
            let gone: Vec<_> = gone.iter().copied().map(MatchNumber).collect();
            let runs = lot.needed_runs(&gone).into_iter();
            runs.map(|run| (run.first, run.count, run.expected_ms)).collect::<Vec<_>>()
        };
        assert_eq!(runs(&[]), [(10, 5, 50)]);
        assert_eq!(runs(&[10, 13]), [(11, 2, 20), (14, 1, 10)]);
        assert_eq!(runs(&[3, 12, 20]), [(10, 2, 20), (13, 2, 20)]);
        assert_eq!(runs(&[10, 11, 12, 13, 14]), []);
    }
}
