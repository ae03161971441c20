//! Audits of workers. A recount replays the record of a match. A shadow match is played again by a
//! second worker. A row is written when its match is counted.

use arbiter_games::string_enum;
use arbiter_proto::ids::{MatchId, MatchNumber, TournamentId, WorkerId};
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

string_enum! {
    /// The kind of an audit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
    #[sqlx(type_name = "audit_kind", rename_all = "lowercase")]
    pub enum AuditKind {
        /// Its record is replayed through the rules.
        Recount = "recount",
        /// Another worker plays it again, and the transcripts are compared.
        Shadow = "shadow",
    }
}

string_enum! {
    /// The state of an audit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
    #[sqlx(type_name = "audit_state", rename_all = "lowercase")]
    pub enum AuditState {
        /// It is queued.
        Waiting = "waiting",
        /// The second play is running.
        Leased = "leased",
        /// Both results agree.
        Agreed = "agreed",
        /// The results differ.
        Disagreed = "disagreed",
        /// The record is unreadable.
        Unreadable = "unreadable",
        /// There is no record.
        Absent = "absent",
        /// The audit is not possible.
        Skipped = "skipped",
    }
}

/// A match selected for an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelectedMatch {
    /// The match.
    pub number: MatchNumber,
    /// The kind of audit.
    pub kind: AuditKind,
    /// The worker that reported the match.
    pub worker: WorkerId,
    /// When the match was reported.
    pub reported_at: OffsetDateTime,
}

/// Queues audits of matches of a tournament that are being counted.
pub async fn add(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    matches: &[SelectedMatch],
) -> Result<()> {
    let statement = "
        INSERT INTO match_audits (tournament, number, kind, worker, reported_at)
        SELECT $1, u.number, u.kind::audit_kind, u.worker, u.reported_at
        FROM unnest($2::bigint[], $3::text[], $4::int[], $5::timestamptz[])
            AS u (number, kind, worker, reported_at)
        ON CONFLICT (tournament, number, kind) DO NOTHING";
    let numbers: Vec<_> = matches.iter().map(|selected| selected.number).collect();
    let kinds: Vec<_> = matches.iter().map(|selected| selected.kind.as_str()).collect();
    let workers: Vec<_> = matches.iter().map(|selected| selected.worker).collect();
    let times: Vec<_> = matches.iter().map(|selected| selected.reported_at).collect();
    let query = sqlx::query(statement).bind(tournament).bind(numbers).bind(kinds);
    query.bind(workers).bind(times).execute(db).await.map(drop)
}

/// A record that is queued for a recount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct PendingRecount {
    /// The match.
    #[sqlx(flatten)]
    pub id: MatchId,
    /// The number of failed attempts to read it.
    pub faults: i16,
}

/// At most 16 records that are queued for a recount. Records with the fewest failures come first.
pub async fn waiting_recounts(db: impl PgExecutor<'_>) -> Result<Vec<PendingRecount>> {
    let statement = "
        SELECT tournament, number, faults FROM match_audits
        WHERE kind = 'recount' AND state = 'waiting'
        ORDER BY faults, tournament, number LIMIT 16";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Ends the recount of a match, and returns the worker that reported the match. Returns `None` if
/// the recount has already ended.
pub async fn end_recount(
    db: impl PgExecutor<'_>,
    id: MatchId,
    state: AuditState,
    reason: Option<&str>,
    now: OffsetDateTime,
) -> Result<Option<WorkerId>> {
    let statement = "
        UPDATE match_audits SET state = $3, reason = left($4, 4000), ended_at = $5
        WHERE tournament = $1 AND number = $2 AND kind = 'recount' AND state = 'waiting'
        RETURNING worker";
    let query = sqlx::query_scalar(statement).bind(id.tournament).bind(id.number).bind(state);
    query.bind(reason).bind(now).fetch_optional(db).await
}

/// Queues a shadow match in place of a recount that is not possible.
pub async fn shadow_instead(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        INSERT INTO match_audits (tournament, number, kind, worker, reported_at)
        SELECT tournament, number, 'shadow', worker, reported_at FROM match_audits
        WHERE tournament = $1 AND number = $2 AND kind = 'recount'
        ON CONFLICT (tournament, number, kind) DO NOTHING";
    sqlx::query(statement).bind(id.tournament).bind(id.number).execute(db).await.map(drop)
}

/// Counts a failed attempt to read a record.
pub async fn record_failure(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        UPDATE match_audits SET faults = faults + 1
        WHERE tournament = $1 AND number = $2 AND kind = 'recount' AND state = 'waiting'";
    sqlx::query(statement).bind(id.tournament).bind(id.number).execute(db).await.map(drop)
}

/// The differences that recounts found for a worker. Suspended workers are left out, and also
/// matches reported before the worker was last reinstated.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct RecountDifferences {
    /// The worker.
    pub worker: WorkerId,
    /// Number of records that contradict the reported result.
    pub disagreed: i64,
    /// Number of unreadable records.
    pub unreadable: i64,
    /// An example: a match and its difference.
    pub example: String,
}

/// The workers with differences found by recounts.
pub async fn recount_differences(db: impl PgExecutor<'_>) -> Result<Vec<RecountDifferences>> {
    let statement = "
        SELECT w.id AS worker,
            count(*) FILTER (WHERE a.state = 'disagreed') AS disagreed,
            count(*) FILTER (WHERE a.state = 'unreadable') AS unreadable,
            (array_agg(t.name || '/' || a.number || ': ' || coalesce(a.reason, '')
                ORDER BY a.state, a.tournament, a.number))[1] AS example
        FROM workers w JOIN match_audits a ON a.worker = w.id
        JOIN tournaments t ON t.id = a.tournament
        LEFT JOIN suspensions s ON s.worker = w.id
        WHERE a.kind = 'recount' AND a.state IN ('disagreed', 'unreadable')
            AND (s.at IS NULL OR a.reported_at > s.reinstated_at)
        GROUP BY w.id ORDER BY w.id";
    sqlx::query_as(statement).fetch_all(db).await
}

/// The end of the reason of a shadow match in which a bot lost on time only in the first play. The
/// number of the seat comes before it.
pub const FALSE_TIME_LOSS: &str = "lost by the clock, and was in time the second time";

/// The number of a worker's audits of one kind and state.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct AuditCount {
    /// The worker that reported them.
    pub worker: WorkerId,
    /// The kind of audit.
    pub kind: AuditKind,
    /// The state.
    pub state: AuditState,
    /// Number of matches.
    pub matches: i64,
    /// Number of these matches in which a bot lost on time only in the first play.
    pub false_time_losses: i64,
}

/// Counts the audits in one tournament or in all tournaments.
pub async fn counts(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<AuditCount>> {
    let statement = "
        SELECT a.worker, a.kind, a.state, count(*) AS matches,
            count(*) FILTER (
                WHERE a.kind = 'shadow' AND a.state = 'disagreed' AND a.reason LIKE '%' || $2
            ) AS false_time_losses
        FROM tournaments t JOIN match_audits a ON a.tournament = t.id
        WHERE $1::int IS NULL OR t.id = $1
        GROUP BY a.worker, a.kind, a.state ORDER BY a.worker, a.kind, a.state";
    let query = sqlx::query_as(statement).bind(tournament).bind(FALSE_TIME_LOSS);
    query.fetch_all(db).await
}

/// A difference that an audit found.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Difference {
    /// The match.
    #[sqlx(flatten)]
    pub id: MatchId,
    /// The worker that reported it.
    pub worker: WorkerId,
    /// The kind of audit that found it.
    pub kind: AuditKind,
    /// What differs.
    pub reason: String,
}

/// The differences found in one tournament or in all tournaments, newest first: at most 100.
pub async fn differences(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<Difference>> {
    let statement = "
        SELECT a.tournament, a.number, a.worker, a.kind, coalesce(a.reason, '') AS reason
        FROM tournaments t JOIN match_audits a ON a.tournament = t.id
        WHERE a.state IN ('disagreed', 'unreadable') AND ($1::int IS NULL OR t.id = $1)
        ORDER BY a.ended_at DESC, a.tournament, a.number LIMIT 100";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}
