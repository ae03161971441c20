//! Operations on the leases of lots, trials and shadow matches.
//!
//! A trial is leased as the lot with the number of its version in tournament 0, a shadow match as
//! the lot with its own number in the negative of its tournament ([`Lease`]).

use arbiter_proto::ids::{Attempt, Lease, LotNumber, TournamentId, WorkerId};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::QueryAs;
use sqlx::{FromRow, PgConnection, PgExecutor, Postgres, Result};
use time::Duration;

use super::lots::{self, FailedLease, Failure, RetryPolicy};
use super::{shadows, trials};

/// The kind of work under a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Lots.
    Lots,
    /// Trials.
    Trials,
    /// Shadow matches.
    ShadowMatches,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Lots, Self::Trials, Self::ShadowMatches];

    fn of(lease: Lease) -> Self {
        match lease {
            _ if lease.version().is_some() => Self::Trials,
            _ if lease.shadow().is_some() => Self::ShadowMatches,
            _ => Self::Lots,
        }
    }
}

/// Groups items by the kind of their leases. Empty groups are left out.
pub fn by_kind<T: Clone>(
    items: &[T],
    lease: impl Fn(&T) -> Lease,
) -> impl Iterator<Item = (Kind, Vec<T>)> {
    let group = |kind| {
        let of_kind = items.iter().filter(|item| Kind::of(lease(item)) == kind);
        (kind, of_kind.cloned().collect::<Vec<_>>())
    };
    Kind::ALL.map(group).into_iter().filter(|(_, group)| !group.is_empty())
}

/// A statement with its arguments and the type of its rows.
pub(super) type Query<'q, T> = QueryAs<'q, Postgres, T, PgArguments>;

/// Leases as three columns, for the arguments of statements.
pub(super) fn columns(
    leases: impl Iterator<Item = Lease>,
) -> (Vec<TournamentId>, Vec<LotNumber>, Vec<Attempt>) {
    leases.map(|Lease { lot, attempt }| (lot.tournament, lot.number, attempt)).collect()
}

/// A query with the arguments `$1` to `$3` for these leases and `$4` for the worker.
pub(super) fn on_leases<'q, T>(
    statement: &'static str,
    by: Option<WorkerId>,
    leases: &[Lease],
) -> Query<'q, T>
where
    T: for<'r> FromRow<'r, PgRow>,
{
    let (tournaments, numbers, attempts) = columns(leases.iter().copied());
    sqlx::query_as(statement).bind(tournaments).bind(numbers).bind(attempts).bind(by)
}

/// A query with the arguments `$1` to `$3` for the leases of these failures, `$4` to `$6` for their
/// reasons, kinds and workers ([`failures`]), and `$7` to `$9` for the retry policy.
pub(super) fn on_failures<'q>(
    statement: &'static str,
    failures: &'q [Failure],
    retry_policy: &RetryPolicy,
) -> Query<'q, FailedLease> {
    let (tournaments, numbers, attempts) = columns(failures.iter().map(|failure| failure.lease));
    let query = sqlx::query_as(statement).bind(tournaments).bind(numbers).bind(attempts);
    query
        .bind(failures.iter().map(|failure| failure.reason.as_str()).collect::<Vec<_>>())
        .bind(failures.iter().map(|failure| failure.kind.as_str()).collect::<Vec<_>>())
        .bind(failures.iter().map(|failure| failure.by).collect::<Vec<_>>())
        .bind(retry_policy.faults)
        .bind(retry_policy.delay)
        .bind(retry_policy.max_delay)
}

/// The leases of a statement, as a table `u`.
macro_rules! leases {
    () => {
        "unnest($1::int[], $2::bigint[], $3::int[]) AS u (tournament, number, attempt)"
    };
}

/// The failures of a statement, as a table `u`.
macro_rules! failures {
    () => {
        "unnest($1::int[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::int[])
            AS u (tournament, number, attempt, reason, kind, by)"
    };
}

/// The condition that a row `r` of a table has the lease of a row of `u`.
macro_rules! held {
    (lots) => {
        "r.tournament = u.tournament AND r.number = u.number AND r.attempt = u.attempt
            AND r.state IS NOT DISTINCT FROM 'leased'"
    };
    (trials) => {
        "u.tournament = 0 AND r.version = u.number AND r.attempt = u.attempt
            AND r.state = 'leased'"
    };
    (match_audits) => {
        "r.tournament = -u.tournament AND r.number = u.number AND r.attempt = u.attempt
            AND r.kind = 'shadow' AND r.state = 'leased'"
    };
}

/// The condition that the lease of a row `r` belongs to the worker `$by`. It is always true if
/// `$by` is null. A lease without a holder belongs to any worker.
macro_rules! ours {
    (lots, $by:literal) => {
        concat!("(", $by, " IS NULL OR r.worker IS NULL OR r.worker = ", $by, ")")
    };
    (trials, $by:literal) => {
        concat!(
            "(",
            $by,
            " IS NULL OR r.holder_attempt IS DISTINCT FROM r.attempt OR r.holder = ",
            $by,
            ")"
        )
    };
    (match_audits, $by:literal) => {
        concat!("(", $by, " IS NULL OR r.second_worker = ", $by, ")")
    };
}

pub(super) use {failures, held, leases, ours};

/// The statement that renews leases of a table.
macro_rules! renew {
    ($table:ident) => {
        concat!(
            "WITH held AS MATERIALIZED (
                SELECT u.* FROM ",
            leases!(),
            " JOIN ",
            stringify!($table),
            " r ON ",
            held!($table),
            " AND ",
            ours!($table, "$4::int"),
            "), free AS (
                SELECT u.* FROM held u JOIN ",
            stringify!($table),
            " r ON ",
            held!($table),
            "   ORDER BY u.tournament, u.number FOR UPDATE OF r SKIP LOCKED
            ), renewed AS (
                UPDATE ",
            stringify!($table),
            " AS r SET deadline = database_clock() + $5::interval
                FROM free u WHERE ",
            held!($table),
            ") SELECT tournament, number, attempt FROM held"
        )
    };
}

/// Renews the valid leases of a kind that belong to the worker, and returns them.
///
/// A lease whose row is locked is returned, but keeps its deadline. The transaction that locked the
/// row decides about that lease. The renewal of other leases does not wait for that transaction.
pub async fn renew(
    db: impl PgExecutor<'_>,
    kind: Kind,
    by: Option<WorkerId>,
    leases: &[Lease],
    duration: Duration,
) -> Result<Vec<Lease>> {
    let statement = match kind {
        Kind::Lots => renew!(lots),
        Kind::Trials => renew!(trials),
        Kind::ShadowMatches => renew!(match_audits),
    };
    on_leases(statement, by, leases).bind(duration).fetch_all(db).await
}

/// Returns unplayed leases of a kind to the queue, without a fault. Skips leases that are not valid
/// or do not belong to the worker, and returns the others. Lots of a tournament without a running
/// edition become cancelled.
pub async fn return_leases(
    db: impl PgExecutor<'_>,
    kind: Kind,
    by: Option<WorkerId>,
    leases: &[Lease],
) -> Result<Vec<Lease>> {
    let statement = match kind {
        Kind::Lots => concat!(
            "WITH held AS (
                SELECT u.* FROM ",
            leases!(),
            " JOIN lots r ON ",
            held!(lots),
            " AND ",
            ours!(lots, "$4::int"),
            " ORDER BY u.tournament, u.number FOR UPDATE OF r
            )
            UPDATE lots AS l
            SET deadline = NULL,
                state = CASE WHEN EXISTS (
                    SELECT FROM editions e
                    WHERE e.tournament = held.tournament AND e.state = 'running'
                ) THEN 'pending' ELSE 'cancelled' END::lot_state
            FROM held WHERE l.tournament = held.tournament AND l.number = held.number
            RETURNING l.tournament, l.number, l.attempt"
        ),
        Kind::Trials => concat!(
            "UPDATE trials AS r SET state = 'waiting', deadline = NULL FROM ",
            leases!(),
            " WHERE ",
            held!(trials),
            " AND ",
            ours!(trials, "$4::int"),
            " RETURNING u.tournament, u.number, u.attempt"
        ),
        Kind::ShadowMatches => concat!(
            "UPDATE match_audits AS r
            SET state = 'waiting', deadline = NULL, second_worker = NULL FROM ",
            leases!(),
            " WHERE ",
            held!(match_audits),
            " AND ",
            ours!(match_audits, "$4::int"),
            " RETURNING u.tournament, u.number, u.attempt"
        ),
    };
    on_leases(statement, by, leases).fetch_all(db).await
}

/// The leases of a kind that these workers hold, locked until the transaction ends.
pub async fn held_by(
    db: impl PgExecutor<'_>,
    kind: Kind,
    workers: &[WorkerId],
) -> Result<Vec<Lease>> {
    let statement = match kind {
        Kind::Lots => {
            "SELECT tournament, number, attempt FROM lots
            WHERE state = 'leased' AND worker = ANY ($1)
            ORDER BY tournament, number FOR UPDATE"
        }
        Kind::Trials => {
            "SELECT 0 AS tournament, version::bigint AS number, attempt FROM trials
            WHERE state = 'leased' AND holder_attempt = attempt AND holder = ANY ($1)
            ORDER BY version FOR UPDATE"
        }
        Kind::ShadowMatches => {
            "SELECT -tournament AS tournament, number, attempt FROM match_audits a
            WHERE kind = 'shadow' AND state = 'leased' AND second_worker = ANY ($1)
            ORDER BY a.tournament, number FOR UPDATE"
        }
    };
    sqlx::query_as(statement).bind(workers).fetch_all(db).await
}

/// Selects leases of lots and trials that are valid or reported, and belong to another worker.
pub async fn held_by_others(
    db: impl PgExecutor<'_>,
    worker: WorkerId,
    leases: &[Lease],
) -> Result<Vec<Lease>> {
    let statement = concat!(
        "SELECT u.* FROM ",
        leases!(),
        " JOIN lots l
            ON l.tournament = u.tournament AND l.number = u.number AND l.attempt = u.attempt
        WHERE l.worker <> $4 AND l.state IN ('leased', 'reported', 'counted')
        UNION ALL
        SELECT u.* FROM ",
        leases!(),
        " JOIN trials t ON u.tournament = 0 AND t.version = u.number AND t.attempt = u.attempt
        WHERE t.holder_attempt = t.attempt AND t.holder <> $4
          AND t.state IN ('leased', 'passed', 'failed')"
    );
    on_leases(statement, Some(worker), leases).fetch_all(db).await
}

/// Records failures, and returns the new states. Skips leases that are not valid or do not belong
/// to the reporting workers.
pub async fn fail(
    db: &mut PgConnection,
    failures: &[Failure],
    retry_policy: &RetryPolicy,
) -> Result<Vec<FailedLease>> {
    let mut failed = Vec::new();
    for (kind, failures) in by_kind(failures, |failure| failure.lease) {
        failed.extend(match kind {
            Kind::Lots => lots::fail(&mut *db, &failures, retry_policy).await?,
            Kind::Trials => trials::fail(&mut *db, &failures, retry_policy).await?,
            Kind::ShadowMatches => shadows::fail(&mut *db, &failures, retry_policy).await?,
        });
    }
    Ok(failed)
}
