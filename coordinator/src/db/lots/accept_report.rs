//! Accepts reports: a lot changes from leased to reported, and its results become valid.

use std::collections::HashMap;

use arbiter_games::string_enum;
use arbiter_proto::ids::{Attempt, Lease, MatchNumber, TournamentId, WorkerId};
use sqlx::{FromRow, PgExecutor, Result};

use super::LotState;
use crate::db::leases::columns;

/// What a report says about its lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The lease.
    pub lease: Lease,
    /// The worker that played it.
    pub worker: WorkerId,
    /// The first match of the lot.
    pub first_match: MatchNumber,
    /// The number of played matches.
    pub count: i32,
    /// The length of the scores of each match.
    pub score_len: i16,
}

/// A lot that is now reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct ReportedLot {
    /// The lease.
    #[sqlx(flatten)]
    pub lease: Lease,
    /// The worker that reported it.
    pub worker: WorkerId,
    /// Whether other lots wait for this one.
    pub has_dependents: bool,
}

/// Marks leased lots as reported, and returns them. Skips claims whose lease is not valid or
/// belongs to another worker, or whose matches are not those of the lot. `claims` contains each
/// lease at most once per worker.
pub async fn mark_reported(db: impl PgExecutor<'_>, claims: &[Claim]) -> Result<Vec<ReportedLot>> {
    // With `IS NOT DISTINCT FROM` the planner cannot use the index of leased lots. It must find
    // each lot by its key.
    let statement = "
        UPDATE lots AS l SET state = 'reported', worker = u.worker,
            reported_at = database_clock(), deadline = NULL
        FROM (
            SELECT * FROM unnest(
                $1::int[], $2::bigint[], $3::int[], $4::int[],
                $5::bigint[], $6::int[], $7::smallint[]
            ) AS u (tournament, number, attempt, worker, first_match, count, score_len)
            ORDER BY tournament, number
        ) AS u
        WHERE l.tournament = u.tournament AND l.number = u.number AND l.attempt = u.attempt
          AND l.state IS NOT DISTINCT FROM 'leased'
          AND (l.worker IS NULL OR l.worker = u.worker)
          AND l.number = u.first_match AND l.count = u.count AND l.score_len = u.score_len
          AND u.worker <> ALL (ARRAY(SELECT worker FROM barred_workers))
        RETURNING l.tournament, l.number, l.attempt, l.worker, l.has_dependents";
    let (tournaments, numbers, attempts) = columns(claims.iter().map(|claim| claim.lease));
    sqlx::query_as(statement)
        .bind(tournaments)
        .bind(numbers)
        .bind(attempts)
        .bind(claims.iter().map(|claim| claim.worker).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.first_match).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.count).collect::<Vec<_>>())
        .bind(claims.iter().map(|claim| claim.score_len).collect::<Vec<_>>())
        .fetch_all(db)
        .await
}

/// Unblocks lots that waited only for the lots `reported`. They become pending. In later editions
/// they are checked first, because their matches may be stored already. Returns the number of lots
/// to check.
pub async fn promote(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    reported: &[i64],
) -> Result<usize> {
    let statement = "
        WITH fed AS (
            SELECT o.after AS number, count(*)::smallint AS befores
            FROM lot_order o WHERE o.tournament = $1 AND o.before = ANY ($2) GROUP BY o.after
        ), locked AS (
            SELECT l.number, fed.befores FROM lots l JOIN fed USING (number)
            WHERE l.tournament = $1 AND l.state IS NOT DISTINCT FROM 'blocked'
            ORDER BY l.number FOR UPDATE OF l
        ), unblocked AS (
            SELECT CASE WHEN max(number) > 1 THEN 'checking' ELSE 'pending' END::lot_state AS state
            FROM editions WHERE tournament = $1
        )
        UPDATE lots AS l
        SET blockers = l.blockers - locked.befores,
            state = CASE WHEN l.blockers = locked.befores THEN unblocked.state ELSE l.state END
        FROM locked, unblocked WHERE l.tournament = $1 AND l.number = locked.number
        RETURNING l.state";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(reported);
    let states: Vec<LotState> = query.fetch_all(db).await?;
    Ok(states.into_iter().filter(|state| *state == LotState::Checking).count())
}

string_enum! {
    /// The status of a report.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ReportStatus {
        /// Its results are stored.
        Accepted = "accepted",
        /// It was accepted before.
        Duplicate = "repeated",
        /// Its lease is no longer valid: the lot was leased again, or cancelled.
        Late = "late",
        /// Its lease belongs to another worker.
        Foreign = "foreign",
        /// It does not fit the matches and seats of its lot.
        Malformed = "malformed",
    }
}

/// A report with the current state and lease of its lot.
#[derive(Debug, FromRow)]
struct ReportRow {
    #[sqlx(flatten)]
    lease: Lease,
    reporter: WorkerId,
    state: Option<LotState>,
    last: Option<Attempt>,
    worker: Option<WorkerId>,
}

impl ReportRow {
    fn status(&self) -> ReportStatus {
        let is_foreign = self.worker.is_some_and(|holder| holder != self.reporter);
        match self.state {
            _ if self.last != Some(self.lease.attempt) => ReportStatus::Late,
            Some(LotState::Reported | LotState::Counted | LotState::Leased) if is_foreign => {
                ReportStatus::Foreign
            }
            Some(LotState::Reported | LotState::Counted) => ReportStatus::Duplicate,
            Some(LotState::Leased) => ReportStatus::Malformed,
            _ => ReportStatus::Late,
        }
    }
}

/// The statuses of reports that were not accepted, by lease and worker.
pub async fn report_statuses(
    db: impl PgExecutor<'_>,
    reports: &[(Lease, WorkerId)],
) -> Result<HashMap<(Lease, WorkerId), ReportStatus>> {
    let statement = "
        SELECT u.tournament, u.number, u.attempt, u.reporter, l.state, l.attempt AS last, l.worker
        FROM unnest($1::int[], $2::bigint[], $3::int[], $4::int[])
            AS u (tournament, number, attempt, reporter)
        LEFT JOIN lots l ON l.tournament = u.tournament AND l.number = u.number";
    let (tournaments, numbers, attempts) = columns(reports.iter().map(|(lease, _)| *lease));
    let workers: Vec<_> = reports.iter().map(|(_, worker)| *worker).collect();
    let query = sqlx::query_as(statement).bind(tournaments).bind(numbers).bind(attempts);
    let rows: Vec<ReportRow> = query.bind(workers).fetch_all(db).await?;
    Ok(rows.iter().map(|row| ((row.lease, row.reporter), row.status())).collect())
}
