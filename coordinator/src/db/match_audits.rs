//! Audits of workers: matches that are recounted from their records, and matches that a second
//! worker plays again. A row is written when its match is counted.

use arbiter_games::string_enum;
use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TournamentId, WorkerId};
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
        /// It waits to be done.
        Waiting = "waiting",
        /// The second play is running.
        Leased = "leased",
        /// Both results agree.
        Agreed = "agreed",
        /// They differ.
        Disagreed = "disagreed",
        /// The record is unreadable.
        Unreadable = "unreadable",
        /// There is no record.
        Absent = "absent",
        /// It is not possible here.
        Skipped = "skipped",
    }
}

/// A match chosen for an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The match.
    pub number: MatchNumber,
    /// The kind of audit.
    pub kind: AuditKind,
    /// The worker that reported it.
    pub worker: WorkerId,
    /// When it was reported.
    pub reported_at: OffsetDateTime,
}

/// Queues audits of matches of an edition that are being counted.
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
    /// How many times it could not be read.
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

/// Ends the recount of a match, and returns the worker that reported it, or none if the recount was
/// over already.
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

/// Queues a shadow match in place of a recount that is not possible.
pub async fn shadow_instead(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        INSERT INTO match_audits (edition, number, kind, worker, reported_at)
        SELECT edition, number, 'shadow', worker, reported_at FROM match_audits
        WHERE edition = $1 AND number = $2 AND kind = 'recount'
        ON CONFLICT (edition, number, kind) DO NOTHING";
    sqlx::query(statement).bind(id.edition).bind(id.number).execute(db).await.map(drop)
}

/// Records that a record could not be read.
pub async fn record_failure(db: impl PgExecutor<'_>, id: MatchId) -> Result<()> {
    let statement = "
        UPDATE match_audits SET faults = faults + 1
        WHERE edition = $1 AND number = $2 AND kind = 'recount' AND state = 'waiting'";
    sqlx::query(statement).bind(id.edition).bind(id.number).execute(db).await.map(drop)
}

/// The differences that recounts found for a worker that is not suspended, since it was last
/// reinstated.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Recounted {
    /// The worker.
    pub worker: WorkerId,
    /// Records that contradict the reported result.
    pub disagreed: i64,
    /// Unreadable records.
    pub unreadable: i64,
    /// An example: the match, and what is wrong.
    pub example: String,
}

/// The workers with differences found by recounts.
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

/// The end of a shadow match's reason, after the number of the seat, if its bot lost on time and
/// was in time in the second play.
pub const FALSE_TIME_LOSS: &str = "lost by the clock, and was in time the second time";

/// The number of a worker's audits of one kind and state.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Count {
    /// The worker that reported them.
    pub worker: WorkerId,
    /// The kind of audit.
    pub kind: AuditKind,
    /// The state.
    pub state: AuditState,
    /// How many.
    pub matches: i64,
    /// In how many of them a bot lost on time and was in time in the second play.
    pub false_time_losses: i64,
}

/// Counts the audits, in one tournament or in all.
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
    /// The kind of audit that found it.
    pub kind: AuditKind,
    /// What differs.
    pub reason: String,
}

/// The differences found in one tournament or in all, newest first: at most 100.
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
