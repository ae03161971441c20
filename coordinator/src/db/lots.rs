//! Lots: matches leased together. These are the rows of the queue that change most often.
//!
//! ```text
//! blocked ──► pending ◄──── delayed ◄──┐
//!    │  ▲       │  ▲ return             │ fault
//!    ▼  │       ▼  │                    │
//! checking   leased ────────────────────┴──► aside (too many faults) ──► pending
//!               │ report
//!               ▼
//!           reported ──► counted       blocked, checking, pending, leased, delayed, aside ──► cancelled
//! ```
//!
//! A lot is named by its first match. A lot of several matches that fails shrinks to its first
//! match, and each other match gets a separate lot. A lot also shrinks if a new edition does not
//! need all its matches. Where bots leave files, an unblocked lot is checked first: its match may
//! be stored already (`stored_match`).
//!
//! Statements that change several lots lock them in the same order to avoid deadlocks: first the
//! lots being played, by number, then the lots that wait for them, by number. Statements that can
//! use any lot skip locked lots. Counting locks lots in physical order, so it fails after a short
//! wait.

use std::ops::Range;

use arbiter_games::string_enum;
use arbiter_proto::ids::{EditionId, Lease, LotNumber, MatchNumber, TournamentId, WorkerId};
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgExecutor, Result};
use time::{Duration, OffsetDateTime};

use super::binary_copy::{Row, Rows, stream};

mod accept_report;
mod cancellation;
mod failure;
mod lot_counts;
mod stored_match;

pub use accept_report::{
    Claim, ReportStatus, ReportedLot, mark_reported, promote, report_statuses,
};
pub use cancellation::{
    absent_in_queue, cancel, cancel_returned, counted, drop_absent, drop_matches, enqueue,
};
pub use failure::{
    FailedLease, Failure, RetryPolicy, aside, expire, fail, requeue, resume_delayed,
};
pub use lot_counts::{Census, census, merge_counts};
pub use stored_match::{CheckedLot, end_check, find_stored, lock_lots, substitute};

string_enum! {
    /// The state of a lot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
    #[sqlx(type_name = "lot_state", rename_all = "snake_case")]
    pub enum LotState {
        /// It waits for other lots.
        Blocked = "blocked",
        /// Its match may be stored already.
        Checking = "checking",
        /// It may be leased.
        Pending = "pending",
        /// It is being played.
        Leased = "leased",
        /// Its results are stored.
        Reported = "reported",
        /// Its results are in the standings.
        Counted = "counted",
        /// It failed. It is retried after a delay.
        Delayed = "delayed",
        /// It failed too often. An organiser decides.
        Aside = "aside",
        /// No edition needs it any more.
        Cancelled = "cancelled",
    }
}

/// A lot as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLot {
    /// Its number: that of its first match.
    pub number: LotNumber,
    /// How many matches it holds.
    pub count: i32,
    /// The expected time of play, in milliseconds.
    pub expected_ms: i32,
    /// The length of the scores of each of its matches: seats times components.
    pub score_len: i16,
    /// The number of lots that it waits for.
    pub blockers: i16,
    /// Whether other lots wait for it.
    pub has_dependents: bool,
}

/// A planned lot with its first state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialLot {
    /// The lot.
    pub lot: NewLot,
    /// Its first state.
    pub state: LotState,
}

impl From<NewLot> for InitialLot {
    /// Pending, or blocked while it waits for other lots.
    fn from(lot: NewLot) -> Self {
        Self { lot, state: if lot.blockers > 0 { LotState::Blocked } else { LotState::Pending } }
    }
}

impl Row for InitialLot {
    const COLUMNS: &'static str =
        "number, tournament, count, expected_ms, score_len, blockers, has_dependents, state";

    fn write(&self, tournament: TournamentId, rows: &mut Rows) {
        let Self { lot, state } = self;
        rows.row(8).int8(lot.number.0).int4(tournament.0).int4(lot.count);
        rows.int4(lot.expected_ms).int2(lot.score_len).int2(lot.blockers).flag(lot.has_dependents);
        rows.bytes(state.as_str().as_bytes());
    }
}

/// Adds lots to the queue of a tournament, and returns their number.
///
/// # Errors
/// If one exists already or is invalid.
pub async fn copy_in(
    connection: &mut PgConnection,
    tournament: TournamentId,
    lots: impl Iterator<Item = InitialLot>,
) -> Result<u64> {
    stream(connection, "lots", tournament, lots).await
}

/// One lot waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    /// The lot that is played first. Its number is lower.
    pub before: LotNumber,
    /// The lot that waits.
    pub after: LotNumber,
}

impl Row for Order {
    const COLUMNS: &'static str = "tournament, before, after";

    fn write(&self, tournament: TournamentId, rows: &mut Rows) {
        rows.row(3).int4(tournament.0).int8(self.before.0).int8(self.after.0);
    }
}

/// Adds rows to the order of a tournament's lots, and returns their number.
///
/// # Errors
/// If a row exists already or is invalid.
pub async fn copy_order_in(
    connection: &mut PgConnection,
    tournament: TournamentId,
    order: impl Iterator<Item = Order>,
) -> Result<u64> {
    stream(connection, "lot_order", tournament, order).await
}

/// A leased lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct LeasedLot {
    /// The lease.
    #[sqlx(flatten)]
    pub lease: Lease,
    /// The edition that it is played for. None for a shadow match.
    pub edition: Option<EditionId>,
    /// The number of matches.
    pub count: i32,
    /// The length of the scores of each match.
    pub score_len: i16,
    /// The expected time of play, in milliseconds.
    pub expected_ms: i32,
    /// The worker that holds it; `None` if any worker may report it.
    #[sqlx(rename = "worker")]
    pub holder: Option<WorkerId>,
}

impl LeasedLot {
    /// Its first match.
    pub fn first_match(&self) -> MatchNumber {
        self.lease.lot.number.into()
    }
}

/// Maximum number of lots of a claim.
const MAX_CLAIM: usize = 1024;

/// The statement that leases this number of lots.
///
/// The lock on the edition's row prevents a concurrent cancellation. During a cancellation the row
/// is skipped, so that leasing does not wait.
///
/// The statement locks the next lots that other transactions have not locked, and finds them again
/// by their `ctid`. If another statement changes the `ctid` of a lot at this moment, the next claim
/// leases that lot. Holders get lots in the order of their `ctid`. They are found by binary search:
/// a linear search would take longer than the writes of a large claim.
fn claim_statement(limit: usize) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!(
        "WITH running AS (
            SELECT id, tournament FROM editions WHERE tournament = $1 AND state = 'running'
            FOR SHARE SKIP LOCKED
        ), next AS (
            SELECT ctid FROM lots
            WHERE tournament = (SELECT tournament FROM running) AND state = 'pending'
            ORDER BY expected_ms DESC, number LIMIT {limit} FOR UPDATE SKIP LOCKED
        )
        UPDATE lots AS l
        SET state = 'leased', attempt = l.attempt + 1, deadline = database_clock() + $2::interval,
            worker = ($3::int[])[width_bucket(l.ctid, ARRAY(SELECT ctid FROM next ORDER BY ctid))]
        WHERE l.ctid = ANY (ARRAY(SELECT ctid FROM next))
        RETURNING l.tournament, l.number, l.attempt, l.count, l.score_len, l.expected_ms, l.worker,
            (SELECT id FROM running) AS edition"
    ))
}

/// Leases pending lots of a tournament whose newest edition runs, for the duration `lease`: at most
/// one lot to each of `holders`, in their order. The lots with the longest expected time are leased
/// first. Any worker may report a lot that is leased to `None`.
pub async fn claim(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    holders: &[Option<WorkerId>],
    lease: Duration,
) -> Result<Vec<LeasedLot>> {
    // Each power of two has a separate statement, so that only a few are prepared.
    let size = 1 << holders.len().clamp(1, MAX_CLAIM).ilog2();
    let holders = &holders[..size.min(holders.len())];
    let query = sqlx::query_as(claim_statement(size)).bind(tournament).bind(lease).bind(holders);
    let mut lots: Vec<LeasedLot> = query.fetch_all(db).await?;
    lots.sort_by_key(|lot| (-lot.expected_ms, lot.lease));
    Ok(lots)
}

/// Maximum number of lots that one statement counts.
pub const MAX_COUNTED: usize = 4096;

/// Marks reported lots of a tournament as counted, at most [`MAX_COUNTED`] of them, and returns
/// them. Two concurrent callers get different lots. Call it within a transaction. It sets a short
/// lock timeout for the rest of the transaction.
///
/// # Errors
/// If another transaction holds one of them ([`db::is_locked`](crate::db::is_locked)).
pub async fn count(
    connection: &mut PgConnection,
    tournament: TournamentId,
) -> Result<Vec<CountedLot>> {
    const { assert!(MAX_COUNTED == 4096, "the statement must have the same limit") };
    // If another transaction counts one of the lots, this statement waits for it. Then the lot is
    // no longer reported. Locking all lots first would cost as much as counting them. A transaction
    // that this one waits for may wait for this one. The lock timeout is shorter than the time
    // after which the server checks for deadlocks.
    let statement = "
        UPDATE lots SET state = 'counted'
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM lots WHERE tournament = $1 AND state = 'reported'
            ORDER BY number LIMIT 4096
        )) AND state IS NOT DISTINCT FROM 'reported'
        RETURNING number AS first_match, number + count AS past, worker, reported_at";
    sqlx::query("SET LOCAL lock_timeout = '200ms'").execute(&mut *connection).await?;
    sqlx::query_as(statement).bind(tournament).fetch_all(connection).await
}

/// The matches of the reported lots of a tournament, whose results are not counted yet, in order.
pub async fn reported(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
) -> Result<Vec<Range<i64>>> {
    let statement = "
        SELECT number, number + count FROM lots
        WHERE tournament = $1 AND state = 'reported' ORDER BY number";
    let rows: Vec<(i64, i64)> = sqlx::query_as(statement).bind(tournament).fetch_all(db).await?;
    Ok(rows.into_iter().map(|(first, past)| first..past).collect())
}

/// A lot whose results are added to the standings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct CountedLot {
    /// Its first match.
    pub first_match: i64,
    /// The number after its last match.
    pub past: i64,
    /// The worker that reported it.
    pub worker: Option<WorkerId>,
    /// When it was reported.
    pub reported_at: Option<OffsetDateTime>,
}

/// The first lot from `first` on whose dependencies differ from the order, if any.
pub async fn find_order_error(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    first: MatchNumber,
) -> Result<Option<String>> {
    // Sessions have nested loops only: a join of lots and their numbers of dependencies would take
    // quadratic time.
    let statement = "
        WITH dependencies AS MATERIALIZED (
            SELECT o.before, o.after, l.state, l.has_dependents
            FROM lot_order o LEFT JOIN lots l ON l.tournament = $1 AND l.number = o.before
            WHERE o.tournament = $1 AND o.after >= $2
        )
        SELECT coalesce(
            (SELECT 'lot ' || number || ' waits for ' || sum(blockers)
                 || ' lots, and the order names ' || sum(befores)
             FROM (SELECT number, blockers, 0 AS befores FROM lots
                   WHERE tournament = $1 AND number >= $2 AND blockers > 0
                   UNION ALL
                   SELECT after, 0, 1 FROM dependencies
                   WHERE state NOT IN ('reported', 'counted')) AS counts
             GROUP BY number HAVING sum(blockers) <> sum(befores) ORDER BY number LIMIT 1),
            (SELECT 'lot ' || before || ' is not marked as one that others wait for'
             FROM dependencies WHERE has_dependents IS NOT TRUE LIMIT 1))";
    sqlx::query_scalar(statement).bind(tournament).bind(first).fetch_one(db).await
}
