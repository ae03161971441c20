//! Describes leases for display: their matches or versions.

use arbiter_proto::ids::{Lease, MatchName, TokenId, WorkerId};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgExecutor, Result, Row as _};

/// A lease with its worker, tournament and work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseDetails {
    /// The worker.
    pub worker: WorkerId,
    /// The tournament.
    pub tournament: String,
    /// The work.
    pub work: LeasedWork,
}

/// The kind of work under a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeasedWork {
    /// A number of consecutive matches, starting with this one.
    Matches(MatchName, i32),
    /// The trial of a version: the name of the bot, and the number of the version.
    Trial(String, i32),
}

/// The details of these leases. Leases that are not valid are left out.
pub async fn of_leases(
    db: impl PgExecutor<'_>,
    leases: &[(WorkerId, Lease)],
) -> Result<Vec<LeaseDetails>> {
    let statement = "
        SELECT u.worker, t.name AS tournament, l.number AS first_match, l.count,
            NULL::text AS bot, NULL::int AS version
        FROM unnest($1::int[], $2::int[], $3::bigint[], $4::int[])
            AS u (worker, tournament, lot, attempt)
        JOIN lots l ON l.tournament = u.tournament AND l.number = u.lot AND l.attempt = u.attempt
        JOIN tournaments t ON t.id = l.tournament
        WHERE l.state = 'leased'
        UNION ALL
        SELECT u.worker, t.name, NULL, NULL, b.name, v.number
        FROM unnest($1::int[], $2::int[], $3::bigint[], $4::int[])
            AS u (worker, tournament, lot, attempt)
        JOIN trials r ON u.tournament = 0 AND r.version = u.lot AND r.attempt = u.attempt
        JOIN versions v ON v.id = r.version
        JOIN bots b ON b.id = v.bot
        JOIN tournaments t ON t.id = b.tournament
        WHERE r.state = 'leased'
        ORDER BY worker, tournament, first_match, bot, version";
    let workers: Vec<_> = leases.iter().map(|(worker, _)| *worker).collect();
    let tournaments: Vec<_> = leases.iter().map(|(_, lease)| lease.lot.tournament).collect();
    let lots: Vec<_> = leases.iter().map(|(_, lease)| lease.lot.number).collect();
    let attempts: Vec<_> = leases.iter().map(|(_, lease)| lease.attempt).collect();
    let query = sqlx::query_as(statement).bind(workers).bind(tournaments).bind(lots);
    query.bind(attempts).fetch_all(db).await
}

/// Whether a worker of this token needs the bundle for one of its leases: a lot or shadow match in
/// which the bundle plays, or a trial of the bundle or against it. A lease without a holder belongs
/// to any worker.
pub async fn needs_bundle(
    db: impl PgExecutor<'_>,
    token: TokenId,
    digest: &[u8; 32],
) -> Result<bool> {
    // A seat names the first version of its bot with the same submission. Another of these versions
    // may play, and its build may differ.
    let statement = "
        WITH ours AS (SELECT worker FROM worker_tokens WHERE token = $1),
        playing AS (
            SELECT same.id, v.bot FROM versions v LEFT JOIN trials t ON t.version = v.id
            JOIN versions same ON same.bot = v.bot AND same.digest = v.digest
            WHERE coalesce(t.program, v.digest) = $2
        )
        SELECT EXISTS (
            SELECT FROM lots l
            JOIN matches m ON m.tournament = l.tournament
                AND m.number >= l.number AND m.number < l.number + l.count
            JOIN playing ON playing.id = ANY (m.seats)
            WHERE l.state = 'leased' AND (l.worker IS NULL OR l.worker IN (SELECT worker FROM ours))
        ) OR EXISTS (
            SELECT FROM trials t
            JOIN versions v ON v.id = t.version
            JOIN bots b ON b.id = v.bot
            WHERE t.state = 'leased'
              AND (t.holder_attempt IS DISTINCT FROM t.attempt
                   OR t.holder IN (SELECT worker FROM ours))
              AND (v.digest = $2 OR EXISTS (
                  SELECT FROM playing JOIN bots house ON house.id = playing.bot
                  WHERE house.tournament = b.tournament AND house.owner IS NULL))
        ) OR EXISTS (
            SELECT FROM match_audits a
            JOIN matches m ON m.tournament = a.tournament AND m.number = a.number
            JOIN playing ON playing.id = ANY (m.seats)
            WHERE a.state = 'leased' AND a.second_worker IN (SELECT worker FROM ours)
        )";
    sqlx::query_scalar(statement).bind(token).bind(digest.as_slice()).fetch_one(db).await
}

impl FromRow<'_, PgRow> for LeaseDetails {
    fn from_row(row: &PgRow) -> Result<Self> {
        let worker = row.try_get("worker")?;
        let tournament: String = row.try_get("tournament")?;
        let work = match row.try_get("first_match")? {
            Some(number) => {
                let first = MatchName { tournament: tournament.clone(), number };
                LeasedWork::Matches(first, row.try_get("count")?)
            }
            None => LeasedWork::Trial(row.try_get("bot")?, row.try_get("version")?),
        };
        Ok(Self { worker, tournament, work })
    }
}
