//! Lots: matches leased together. These are the rows of the queue that change most often.
//!
//! ```text
//! blocked ──► pending ◄──────────────── delayed ◄──┐
//!    │  ▲       │  ▲ return                       │ fault, one match
//!    ▼  │       ▼  │                              │
//! checking   leased ──────────────────────────────┼──► aside (too many faults) ──► pending
//!       │       │ report                          └──► split (several matches: each is retried
//!       ▼       ▼                                      in a separate delayed lot)
//!          reported ──► counted         blocked, checking, pending, leased, delayed, aside ──► cancelled
//! ```
//!
//! A lot is checked for reuse if an earlier edition may have played its matches (`reuse_lookup`).
//! If the edition did, the lot is reported at once. Lots of a replaced edition stay leased while
//! the next edition may reuse their results. Then they become reported or cancelled.
//!
//! Statements that change several lots lock them in the same order to avoid deadlocks: first the
//! lots being played, by number, then the lots that wait for them, by number. Statements that can
//! use any lot skip locked lots. Counting locks lots in physical order, so it fails after a short
//! wait.

use arbiter_games::string_enum;
use arbiter_proto::ids::{EditionId, Lease, LotId, LotNumber, MatchNumber, WorkerId};
use sqlx::{FromRow, PgConnection, PgExecutor, Result};
use time::{Duration, OffsetDateTime};

use super::binary_copy::{Row, Rows, stream};

mod accept_report;
mod cancellation;
mod failure;
mod lot_counts;
mod reuse_lookup;

pub use accept_report::{
    Claim, ReportStatus, ReportedLot, mark_reported, promote, report_statuses,
};
pub use cancellation::{cancel, cancel_returned, replace};
pub use failure::{
    FailedLease, Failure, RetryPolicy, aside, expire, fail, requeue, resume_delayed,
};
pub use lot_counts::{Census, census, merge_counts};
pub use reuse_lookup::{
    ReuseCandidate, copy_results, exclude_void, find_reusable, finish_reuse_check,
};

string_enum! {
    /// The state of a lot.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, sqlx::Type)]
    #[sqlx(type_name = "lot_state", rename_all = "snake_case")]
    pub enum LotState {
        /// It waits for other lots.
        Blocked = "blocked",
        /// An earlier edition may have played its matches, or may be playing them.
        CheckingReuse = "checking_reuse",
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
        /// It failed. Its matches are retried one by one in separate lots.
        Split = "split",
        /// It failed too often. An organiser decides.
        Aside = "aside",
        /// Its edition was cancelled.
        Cancelled = "cancelled",
    }
}

/// A lot as planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLot {
    /// Its number in the edition, from 0.
    pub number: LotNumber,
    /// Its first match.
    pub first_match: MatchNumber,
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
    /// Its first state: [`LotState::Reported`] if its results were reused.
    pub state: LotState,
}

impl From<NewLot> for InitialLot {
    /// Pending, or blocked while it waits for other lots.
    fn from(lot: NewLot) -> Self {
        Self { lot, state: if lot.blockers > 0 { LotState::Blocked } else { LotState::Pending } }
    }
}

impl Row for InitialLot {
    const COPY: &'static str = "
        COPY lots (number, first_match, edition, count, expected_ms, score_len, blockers,
            has_dependents, state, reused)
        FROM STDIN (FORMAT binary)";

    fn write(&self, edition: EditionId, rows: &mut Rows) {
        let Self { lot, state } = self;
        rows.row(10).int8(lot.number.0).int8(lot.first_match.0).int4(edition.0).int4(lot.count);
        rows.int4(lot.expected_ms).int2(lot.score_len).int2(lot.blockers).flag(lot.has_dependents);
        rows.bytes(state.as_str().as_bytes()).flag(*state == LotState::Reported);
    }
}

/// Adds lots to an edition, and returns their number.
///
/// # Errors
/// If one exists already or is invalid.
pub async fn copy_in(
    connection: &mut PgConnection,
    edition: EditionId,
    lots: impl Iterator<Item = impl Into<InitialLot>>,
) -> Result<u64> {
    stream(connection, edition, lots.map(Into::into)).await
}

/// The number after that of the last lot of an edition.
pub async fn next_number(db: impl PgExecutor<'_>, edition: EditionId) -> Result<LotNumber> {
    let statement = "
        SELECT coalesce(max(number), -1) + 1 FROM lots WHERE edition = $1 AND number >= 0";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
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
    const COPY: &'static str = "COPY lot_order (edition, before, after) FROM STDIN (FORMAT binary)";

    fn write(&self, edition: EditionId, rows: &mut Rows) {
        rows.row(3).int4(edition.0).int8(self.before.0).int8(self.after.0);
    }
}

/// Adds rows to the order of an edition's lots, and returns their number.
///
/// # Errors
/// If a row exists already or is invalid.
pub async fn copy_order_in(
    connection: &mut PgConnection,
    edition: EditionId,
    order: impl Iterator<Item = Order>,
) -> Result<u64> {
    stream(connection, edition, order).await
}

/// A leased lot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct LeasedLot {
    /// The lease.
    #[sqlx(flatten)]
    pub lease: Lease,
    /// The first match.
    pub first_match: MatchNumber,
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

/// The maximum number of lots of a claim: a power of two. Each such number has a separate
/// statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClaimSize(usize);

impl ClaimSize {
    /// The largest claim.
    const MAX: usize = 1024;

    /// The largest claim of at most this many lots, or of one.
    fn at_most(lots: usize) -> Self {
        Self(1 << lots.clamp(1, Self::MAX).ilog2())
    }

    fn statement(self) -> &'static str {
        /// The lock on the edition's row prevents a concurrent cancellation. During a cancellation
        /// the row is skipped, so that leasing does not wait.
        ///
        /// The statement locks the next lots that other transactions have not locked, and finds
        /// them again by their `ctid`. If another statement changes the `ctid` of a lot at this
        /// moment, the next claim leases that lot. Holders get lots in the order of their `ctid`.
        /// They are found by binary search: a linear search would take longer than the writes of a
        /// large claim.
        macro_rules! claim {
            ($limit:literal) => {
                concat!(
                    "WITH running AS (
                        SELECT id FROM editions WHERE id = $1 AND state = 'running'
                        FOR SHARE SKIP LOCKED
                    ), next AS (
                        SELECT ctid FROM lots
                        WHERE edition = (SELECT id FROM running) AND state = 'pending'
                        ORDER BY expected_ms DESC, number LIMIT ",
                    $limit,
                    " FOR UPDATE SKIP LOCKED
                    )
                    UPDATE lots AS l
                    SET state = 'leased', attempt = l.attempt + 1,
                        deadline = database_clock() + $2::interval,
                        worker = ($3::int[])[width_bucket(
                            l.ctid, ARRAY(SELECT ctid FROM next ORDER BY ctid))]
                    WHERE l.ctid = ANY (ARRAY(SELECT ctid FROM next))
                    RETURNING l.edition, l.number, l.attempt, l.first_match, l.count, l.score_len,
                        l.expected_ms, l.worker"
                )
            };
        }
        match self.0 {
            Self::MAX.. => claim!("1024"),
            512.. => claim!("512"),
            256.. => claim!("256"),
            128.. => claim!("128"),
            64.. => claim!("64"),
            32.. => claim!("32"),
            16.. => claim!("16"),
            8.. => claim!("8"),
            4.. => claim!("4"),
            2.. => claim!("2"),
            _ => claim!("1"),
        }
    }
}

/// Leases pending lots of a running edition for the duration `lease`: at most one lot to each of
/// `holders`, in their order. The lots with the longest expected time are leased first. Any worker
/// may report a lot that is leased to `None`.
pub async fn claim(
    db: impl PgExecutor<'_>,
    edition: EditionId,
    holders: &[Option<WorkerId>],
    lease: Duration,
) -> Result<Vec<LeasedLot>> {
    let size = ClaimSize::at_most(holders.len());
    let holders = &holders[..size.0.min(holders.len())];
    let query = sqlx::query_as(size.statement()).bind(edition).bind(lease).bind(holders);
    let mut lots: Vec<LeasedLot> = query.fetch_all(db).await?;
    lots.sort_by_key(|lot| (-lot.expected_ms, lot.lease));
    Ok(lots)
}

/// Maximum number of lots that one statement counts.
pub const MAX_COUNTED: usize = 4096;

/// Marks reported lots of an edition as counted, at most [`MAX_COUNTED`] of them, and returns them.
/// Two concurrent callers get different lots. Call it within a transaction. It sets a short lock
/// timeout for the rest of the transaction.
///
/// # Errors
/// If another transaction holds one of them ([`db::is_locked`](crate::db::is_locked)).
pub async fn count(
    connection: &mut PgConnection,
    edition: EditionId,
    scope: CountScope,
) -> Result<Vec<CountedLot>> {
    const { assert!(MAX_COUNTED == 4096, "the statement must have the same limit") };
    // If another transaction counts one of the lots, this statement waits for it. Then the lot is
    // no longer reported. Locking all lots first would cost as much as counting them. A transaction
    // that this one waits for may wait for this one. The lock timeout is shorter than the time
    // after which the server checks for deadlocks.
    let statement = "
        UPDATE lots SET state = 'counted'
        WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM lots WHERE edition = $1 AND state = 'reported' AND reused <= $2
            ORDER BY reused, number LIMIT 4096
        )) AND state IS NOT DISTINCT FROM 'reported'
        RETURNING first_match, first_match + count AS past, worker, reported_at, reused";
    sqlx::query("SET LOCAL lock_timeout = '200ms'").execute(&mut *connection).await?;
    let query = sqlx::query_as(statement).bind(edition).bind(scope == CountScope::All);
    query.fetch_all(connection).await
}

/// The reported lots that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountScope {
    /// All reported lots.
    All,
    /// Only lots whose results were not reused from an earlier edition.
    NotReused,
}

/// A lot whose results are added to the standings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct CountedLot {
    /// Its first match.
    pub first_match: i64,
    /// The number after its last match.
    pub past: i64,
    /// The worker that reported it; `None` if its results were reused.
    pub worker: Option<WorkerId>,
    /// When it was reported; `None` if its results were reused.
    pub reported_at: Option<OffsetDateTime>,
    /// Whether its results were reused.
    pub reused: bool,
}

/// The first match of a lot.
pub async fn first(db: impl PgExecutor<'_>, lot: LotId) -> Result<MatchNumber> {
    let statement = "SELECT first_match FROM lots WHERE edition = $1 AND number = $2";
    let query = sqlx::query_scalar(statement).bind(lot.edition).bind(lot.number);
    query.fetch_one(db).await
}

/// The first error in the lots of an edition, if any: a match that is in no lot or in two lots, or
/// a lot whose dependencies differ from the order.
pub async fn find_plan_error(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Option<String>> {
    let statement = "
        SELECT coalesce(
            (SELECT 'lot ' || number || ' begins with match ' || first_match || ', not with ' || due
             FROM (SELECT number, first_match, coalesce(sum(count) OVER (
                       ORDER BY first_match, number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                   ), 0) AS due
                   FROM lots WHERE edition = $1 AND number >= 0) AS cut
             WHERE first_match <> due ORDER BY first_match LIMIT 1),
            (SELECT 'the lots hold ' || coalesce(sum(count), 0) || ' matches of ' || (
                 SELECT count(*) FROM matches WHERE edition = $1)
             FROM lots WHERE edition = $1 AND number >= 0
             HAVING coalesce(sum(count), 0) <> (SELECT count(*) FROM matches WHERE edition = $1)),
            (SELECT 'lot ' || coalesce(l.number, o.after) || ' waits for ' || coalesce(l.blockers, 0)
                 || ' lots, and the order names ' || coalesce(o.befores, 0)
             FROM (SELECT number, blockers FROM lots
                   WHERE edition = $1 AND state IN ('blocked', 'checking_reuse', 'pending')) AS l
             FULL JOIN (SELECT after, count(*) AS befores FROM lot_order
                        WHERE edition = $1 GROUP BY after) AS o ON o.after = l.number
             WHERE coalesce(l.blockers, 0) <> coalesce(o.befores, 0) LIMIT 1),
            (SELECT 'lot ' || o.before || ' is not marked as one that others wait for'
             FROM lot_order o LEFT JOIN lots l ON l.edition = $1 AND l.number = o.before
             WHERE o.edition = $1 AND l.has_dependents IS NOT TRUE LIMIT 1))";
    sqlx::query_scalar(statement).bind(edition).fetch_one(db).await
}
