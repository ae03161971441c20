//! What is found out about workers: matches that are recounted from their records, and matches that
//! a second worker plays again. A row is written when its match is counted.

use arbiter_games::string_enum;
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TournamentId, WorkerId};
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

string_enum! {
    /// How a match is looked at.
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
    /// Where that stands.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
    #[sqlx(type_name = "audit_state", rename_all = "lowercase")]
    pub enum AuditState {
        /// It is still to be done.
        Waiting = "waiting",
        /// The second play goes on.
        Leased = "leased",
        /// Both came to the same.
        Agreed = "agreed",
        /// They did not.
        Disagreed = "disagreed",
        /// The record is no record at all.
        Unreadable = "unreadable",
        /// There is no record.
        Absent = "absent",
        /// It cannot be done here.
        Skipped = "skipped",
    }
}

/// A match that is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The match.
    pub number: MatchNumber,
    /// How.
    pub kind: AuditKind,
    /// The worker that reported it.
    pub worker: WorkerId,
    /// When.
    pub reported_at: OffsetDateTime,
}

/// Has matches of an edition looked at which were counted just now.
pub async fn add(db: impl PgExecutor<'_>, edition: EditionId, chosen: &[Chosen]) -> Result<()> {
    let statement = "
        INSERT INTO match_audits (edition, number, kind, worker, reported_at)
        SELECT $1, u.number, u.kind::audit_kind, u.worker, u.reported_at
        FROM unnest($2::bigint[], $3::text[], $4::int[], $5::timestamptz[])
            AS u (number, kind, worker, reported_at)
        ON CONFLICT (edition, number, kind) DO NOTHING";
    let numbers: Vec<_> = chosen.iter().map(|chosen| chosen.number).collect();
    let kinds: Vec<_> = chosen.iter().map(|chosen| chosen.kind.as_str()).collect();
    let workers: Vec<_> = chosen.iter().map(|chosen| chosen.worker).collect();
    let times: Vec<_> = chosen.iter().map(|chosen| chosen.reported_at).collect();
    let query = sqlx::query(statement).bind(edition).bind(numbers).bind(kinds);
    query.bind(workers).bind(times).execute(db).await.map(drop)
}

/// A record that waits to be recounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Waiting {
    /// The match.
    #[sqlx(flatten)]
    pub id: MatchId,
    /// How often it could not be read so far.
    pub faults: i16,
}

/// Records that wait to be recounted, at most 16, those that failed least often first.
pub async fn waiting_recounts(db: impl PgExecutor<'_>) -> Result<Vec<Waiting>> {
    let statement = "
        SELECT edition, number, faults FROM match_audits
        WHERE kind = 'recount' AND state = 'waiting'
        ORDER BY faults, edition, number LIMIT 16";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Ends the recount of a match, and returns the worker that reported it; nothing if it was over.
pub async fn end_recount(
    db: impl PgExecutor<'_>,
    id: MatchId,
    state: AuditState,
    reason: Option<&str>,
    now: OffsetDateTime,
) -> Result<Option<WorkerId>> {
    let statement = "
        UPDATE match_audits SET state = $3, reason = left($4, 4000), ended_at = $5
        WHERE edition = $1 AND number = $2 AND kind = 'recount' AND state = 'waiting'
        RETURNING worker";
    let query = sqlx::query_scalar(statement).bind(id.edition).bind(id.number).bind(state);
    query.bind(reason).bind(now).fetch_optional(db).await
}

/// Has a match played once more whose record was to be recounted and cannot be.
pub async fn shadow_instead(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        INSERT INTO match_audits (edition, number, kind, worker, reported_at)
        SELECT edition, number, 'shadow', worker, reported_at FROM match_audits
        WHERE edition = $1 AND number = $2 AND kind = 'recount'
        ON CONFLICT (edition, number, kind) DO NOTHING";
    sqlx::query(statement).bind(id.edition).bind(id.number).execute(db).await.map(drop)
}

/// Takes note that a record could not be read this time.
pub async fn put_off(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        UPDATE match_audits SET faults = faults + 1
        WHERE edition = $1 AND number = $2 AND kind = 'recount' AND state = 'waiting'";
    sqlx::query(statement).bind(id.edition).bind(id.number).execute(db).await.map(drop)
}

/// What recounts have shown of a worker that is not suspended, since it was last reinstated.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Recounted {
    /// The worker.
    pub worker: WorkerId,
    /// Records that do not give the result that was reported.
    pub disagreed: i64,
    /// Records that are none.
    pub unreadable: i64,
    /// One of them: the match, and what is wrong.
    pub example: String,
}

/// The workers of which recounts have shown something wrong.
pub async fn recounted(db: impl PgExecutor<'_>) -> Result<Vec<Recounted>> {
    let statement = "
        SELECT w.id AS worker,
            count(*) FILTER (WHERE a.state = 'disagreed') AS disagreed,
            count(*) FILTER (WHERE a.state = 'unreadable') AS unreadable,
            (array_agg(a.edition || '/' || a.number || ': ' || coalesce(a.reason, '')
                ORDER BY a.state, a.edition, a.number))[1] AS example
        FROM workers w JOIN match_audits a ON a.worker = w.id
        LEFT JOIN suspensions s ON s.worker = w.id
        WHERE a.kind = 'recount' AND a.state IN ('disagreed', 'unreadable')
            AND (s.at IS NULL OR a.reported_at > s.reinstated_at)
        GROUP BY w.id ORDER BY w.id";
    sqlx::query_as(statement).fetch_all(db).await
}

/// What the reason of a shadow match ends with if a bot lost by the clock and was in time the second
/// time, after the number of its seat.
pub const FALSE_TIME_LOSS: &str = "lost by the clock, and was in time the second time";

/// How many matches of a worker were looked at in a way, and how that stands.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Count {
    /// The worker that reported them.
    pub worker: WorkerId,
    /// How they were looked at.
    pub kind: AuditKind,
    /// How that stands.
    pub state: AuditState,
    /// How many.
    pub matches: i64,
    /// In how many of them a bot lost by the clock and was in time the second time.
    pub false_time_losses: i64,
}

/// Counts what was looked at, in one tournament or in all.
pub async fn counts(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<Count>> {
    let statement = "
        SELECT a.worker, a.kind, a.state, count(*) AS matches,
            count(*) FILTER (
                WHERE a.kind = 'shadow' AND a.state = 'disagreed' AND a.reason LIKE '%' || $2
            ) AS false_time_losses
        FROM editions e JOIN match_audits a ON a.edition = e.id
        WHERE $1::int IS NULL OR e.tournament = $1
        GROUP BY a.worker, a.kind, a.state ORDER BY a.worker, a.kind, a.state";
    let query = sqlx::query_as(statement).bind(tournament).bind(FALSE_TIME_LOSS);
    query.fetch_all(db).await
}

/// A difference that was found.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Found {
    /// The match.
    #[sqlx(flatten)]
    pub id: MatchId,
    /// The worker that reported it.
    pub worker: WorkerId,
    /// How it was found.
    pub kind: AuditKind,
    /// What differs.
    pub reason: String,
}

/// The differences that were found, in one tournament or in all, the newest first: at most 100.
pub async fn differences(
    db: impl PgExecutor<'_>,
    tournament: Option<TournamentId>,
) -> Result<Vec<Found>> {
    let statement = "
        SELECT a.edition, a.number, a.worker, a.kind, coalesce(a.reason, '') AS reason
        FROM editions e JOIN match_audits a ON a.edition = e.id
        WHERE a.state IN ('disagreed', 'unreadable') AND ($1::int IS NULL OR e.tournament = $1)
        ORDER BY a.ended_at DESC, a.edition, a.number LIMIT 100";
    sqlx::query_as(statement).bind(tournament).fetch_all(db).await
}
