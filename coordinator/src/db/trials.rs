//! Trials: versions are built and tried before they enter. Trials are leased like lots.
//! [`Lease::version`] distinguishes the two.

use arbiter_games::string_enum;
use arbiter_proto::ids::{Lease, TokenId, VersionId, WorkerId};
use serde_json::Value;
use sqlx::{FromRow, PgExecutor, Result};
use time::Duration;

use super::leases::{failures, held, held_by_others, on_failures, ours};
use super::lots::{FailedLease, Failure, ReportStatus, RetryPolicy};
use super::worker_runtimes::other_worker_has;

string_enum! {
    /// The state of a trial. Its text is the state of the version in messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, sqlx::Type)]
    #[sqlx(type_name = "trial_state", rename_all = "lowercase")]
    pub enum TrialState {
        /// It may be leased.
        Waiting = "waiting",
        /// The version is being built and tried.
        Leased = "trying",
        /// The version has entered.
        Passed = "entered",
        /// The version failed its trial and does not enter.
        Failed = "failed",
        /// The trial failed too often because of faults. An organiser decides.
        Aside = "aside",
    }
}

/// A trial.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Trial {
    /// The version that is tried.
    pub version: VersionId,
    /// Its state.
    pub state: TrialState,
    /// The number of faults.
    pub faults: i16,
    /// Why the version failed, or the reason of the last fault, in one line.
    pub verdict: Option<String>,
    /// The evidence of the failure.
    pub evidence: Option<String>,
    /// The end of its build's output.
    pub log: Option<String>,
    /// The measurements.
    pub figures: Option<Value>,
    /// Warnings about deviations from the protocol that are allowed.
    pub warnings: Option<Vec<String>>,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The lease of the trial.
    pub lease: Lease,
    /// The worker that ran it.
    pub worker: WorkerId,
    /// Why the version failed, in one line; `None` if it passed.
    pub verdict: Option<String>,
    /// The evidence of the failure.
    pub evidence: String,
    /// The end of its build's output.
    pub log: String,
    /// The measurements.
    pub figures: Value,
    /// Warnings about deviations from the protocol that are allowed.
    pub warnings: Vec<String>,
    /// The digest of the stored build, if there is one.
    pub program: Option<[u8; 32]>,
    /// A program that the version needs and that the worker lacks.
    pub missing_program: Option<String>,
}

/// Queues the trial of a version.
pub async fn queue(db: impl PgExecutor<'_>, version: VersionId) -> Result<()> {
    let statement = "INSERT INTO trials (version, queued_at) VALUES ($1, database_clock())";
    sqlx::query(statement).bind(version).execute(db).await.map(drop)
}

/// The trial of a version, if it has one.
pub async fn get(db: impl PgExecutor<'_>, version: VersionId) -> Result<Option<Trial>> {
    let statement = "
        SELECT version, state, faults, verdict, evidence, log, figures, warnings
        FROM trials WHERE version = $1";
    sqlx::query_as(statement).bind(version).fetch_optional(db).await
}

/// The number of waiting trials before the trial of a version.
pub async fn ahead(db: impl PgExecutor<'_>, version: VersionId) -> Result<i64> {
    let statement = "SELECT count(*) FROM trials WHERE state = 'waiting' AND version < $1";
    sqlx::query_scalar(statement).bind(version).fetch_one(db).await
}

/// The number of this owner's versions with unfinished trials in open tournaments.
pub async fn pending(db: impl PgExecutor<'_>, owner: TokenId) -> Result<i64> {
    let statement = "
        SELECT count(*) FROM trials t
        JOIN versions v ON v.id = t.version
        JOIN bots b ON b.id = v.bot
        JOIN tournaments c ON c.id = b.tournament
        WHERE t.state IN ('waiting', 'leased') AND b.owner = $1
            AND b.withdrawn_at IS NULL AND c.state = 'open'";
    sqlx::query_scalar(statement).bind(owner).fetch_one(db).await
}

/// Leases the oldest waiting trial of an active bot in an open tournament to a worker.
pub async fn claim(
    db: impl PgExecutor<'_>,
    holder: Option<WorkerId>,
    lease: Duration,
) -> Result<Option<Lease>> {
    let statement = concat!(
        "WITH next AS (
            SELECT t.version FROM trials t
            JOIN versions v ON v.id = t.version
            JOIN bots b ON b.id = v.bot
            JOIN tournaments c ON c.id = b.tournament
            WHERE t.state = 'waiting' AND (t.not_before IS NULL OR t.not_before <= (SELECT database_clock()))
                AND b.withdrawn_at IS NULL AND c.state = 'open'
                AND NOT EXISTS (
                    SELECT FROM trial_exclusions x
                    WHERE x.version = t.version AND x.worker = $2::int AND ",
        other_worker_has!("t.version", "$2::int", "x.program"),
        ")
            ORDER BY t.version LIMIT 1 FOR UPDATE OF t SKIP LOCKED
        )
        UPDATE trials AS t
        SET state = 'leased', attempt = t.attempt + 1, not_before = NULL,
            deadline = database_clock() + $1::interval, holder = $2::int,
            holder_attempt = CASE WHEN $2::int IS NOT NULL THEN t.attempt + 1 END
        FROM next WHERE t.version = next.version
        RETURNING 0 AS tournament, t.version::bigint AS number, t.attempt"
    );
    sqlx::query_as(statement).bind(lease).bind(holder).fetch_optional(db).await
}

/// Records faults of trials. The trials are retried after a delay, or set aside after too many
/// faults. Skips leases that are not valid or do not belong to the reporting workers. Returns the
/// new states of the others.
pub async fn fail(
    db: impl PgExecutor<'_>,
    failures: &[Failure],
    retry_policy: &RetryPolicy,
) -> Result<Vec<FailedLease>> {
    let statement = concat!(
        "UPDATE trials AS r
        SET faults = r.faults + 1,
            deadline = NULL,
            verdict = left(u.reason, 4000),
            state = CASE WHEN r.faults + 1 >= $7::smallint THEN 'aside' ELSE 'waiting' END::trial_state,
            ended_at = CASE WHEN r.faults + 1 >= $7::smallint THEN database_clock() END,
            not_before = database_clock()
                + least($9::interval, $8::interval * power(2, least(r.faults, 30)))
        FROM ",
        failures!(),
        " WHERE ",
        held!(trials),
        " AND ",
        ours!(trials, "u.by"),
        " RETURNING u.tournament, u.number, u.attempt,
            CASE r.state WHEN 'aside' THEN 'aside' ELSE 'delayed' END::lot_state AS state"
    );
    on_failures(statement, failures, retry_policy).fetch_all(db).await
}

/// Leases whose deadline has passed, at most 1000, locked until the transaction ends.
pub async fn expire(db: impl PgExecutor<'_>) -> Result<Vec<Lease>> {
    let statement = "
        SELECT 0 AS tournament, version::bigint AS number, attempt FROM trials
        WHERE state = 'leased' AND deadline < (SELECT database_clock())
        ORDER BY deadline LIMIT 1000 FOR UPDATE SKIP LOCKED";
    sqlx::query_as(statement).fetch_all(db).await
}

/// Stores the result of a trial, if its lease is valid and belongs to the worker. Returns the
/// status of the report.
pub async fn finish(db: &mut sqlx::PgConnection, outcome: &Outcome) -> Result<ReportStatus> {
    let Some(version) = outcome.lease.version() else { return Ok(ReportStatus::Malformed) };
    let state = if outcome.verdict.is_some() { TrialState::Failed } else { TrialState::Passed };
    let statement = "
        UPDATE trials
        SET state = $3, deadline = NULL, ended_at = database_clock(), worker = $4, verdict = $5,
            evidence = $6, log = $7, figures = $8, warnings = $9, program = $10
        WHERE version = $1 AND attempt = $2 AND state = 'leased'
          AND (holder_attempt IS DISTINCT FROM attempt OR holder = $4)
          AND NOT EXISTS (SELECT FROM barred_workers WHERE worker = $4)";
    let result = sqlx::query(statement)
        .bind(version)
        .bind(outcome.lease.attempt)
        .bind(state)
        .bind(outcome.worker)
        .bind(&outcome.verdict)
        .bind(&outcome.evidence)
        .bind(&outcome.log)
        .bind(&outcome.figures)
        .bind(&outcome.warnings)
        .bind(outcome.program.as_ref().map(<[u8; 32]>::as_slice))
        .execute(&mut *db)
        .await?;
    if result.rows_affected() == 1 {
        return Ok(ReportStatus::Accepted);
    }
    if !held_by_others(&mut *db, outcome.worker, &[outcome.lease]).await?.is_empty() {
        return Ok(ReportStatus::Foreign);
    }
    let statement = "
        SELECT EXISTS (SELECT FROM trials
            WHERE version = $1 AND attempt = $2 AND state IN ('passed', 'failed'))";
    let query = sqlx::query_scalar(statement).bind(version).bind(outcome.lease.attempt);
    Ok(if query.fetch_one(db).await? { ReportStatus::Duplicate } else { ReportStatus::Late })
}

/// Retries a trial that was set aside, and resets its faults. Returns whether it was set aside.
pub async fn retry(db: impl PgExecutor<'_>, version: VersionId) -> Result<bool> {
    let statement = "
        UPDATE trials SET state = 'waiting', faults = 0, ended_at = NULL, not_before = NULL
        WHERE version = $1 AND state = 'aside'";
    Ok(sqlx::query(statement).bind(version).execute(db).await?.rows_affected() == 1)
}
