//! Describes leases for display: their matches or versions.

use arbiter_proto::ids::{Lease, MatchId, TokenId, WorkerId};
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
    Matches(MatchId, i32),
    /// The trial of a version: the name of the bot, and the number of the version.
    Trial(String, i32),
}

/// The details of these leases. Leases that are not valid are left out.
pub async fn of_leases(
    db: impl PgExecutor<'_>,
    leases: &[(WorkerId, Lease)],
) -> Result<Vec<LeaseDetails>> {
    let statement = "
        SELECT u.worker, t.name AS tournament, l.edition, l.first_match, l.count,
            NULL::text AS bot, NULL::int AS version
        FROM unnest($1::int[], $2::int[], $3::bigint[], $4::int[])
            AS u (worker, edition, lot, attempt)
        JOIN lots l ON l.edition = u.edition AND l.number = u.lot AND l.attempt = u.attempt
        JOIN editions e ON e.id = l.edition
        JOIN tournaments t ON t.id = e.tournament
        WHERE l.state = 'leased'
        UNION ALL
        SELECT u.worker, t.name, NULL, NULL, NULL, b.name, v.number
        FROM unnest($1::int[], $2::int[], $3::bigint[], $4::int[])
            AS u (worker, edition, lot, attempt)
        JOIN trials r ON u.edition = 0 AND r.version = u.lot AND r.attempt = u.attempt
        JOIN versions v ON v.id = r.version
        JOIN bots b ON b.id = v.bot
        JOIN tournaments t ON t.id = b.tournament
        WHERE r.state = 'leased'
        ORDER BY worker, tournament, edition, first_match, bot, version";
    let workers: Vec<_> = leases.iter().map(|(worker, _)| *worker).collect();
    let editions: Vec<_> = leases.iter().map(|(_, lease)| lease.lot.edition).collect();
    let lots: Vec<_> = leases.iter().map(|(_, lease)| lease.lot.number).collect();
    let attempts: Vec<_> = leases.iter().map(|(_, lease)| lease.attempt).collect();
    let query = sqlx::query_as(statement).bind(workers).bind(editions).bind(lots).bind(attempts);
    query.fetch_all(db).await
}

/// Whether a worker of this token needs the bundle for one of its leases: a lot or shadow match in
/// which the bundle plays, or a trial of the bundle or against it. A lease without a holder belongs
/// to any worker.
pub async fn needs_bundle(
    db: impl PgExecutor<'_>,
    token: TokenId,
    digest: &[u8; 32],
) -> Result<bool> {
    let statement = "
        WITH ours AS (SELECT worker FROM worker_tokens WHERE token = $1),
        playing AS (
            SELECT v.id, v.bot FROM versions v LEFT JOIN trials t ON t.version = v.id
            WHERE coalesce(t.program, v.digest) = $2
        )
        SELECT EXISTS (
            SELECT FROM lots l
            JOIN matches m ON m.edition = l.edition
                AND m.number >= l.first_match AND m.number < l.first_match + l.count
            JOIN entrants e ON e.edition = l.edition AND e.entrant = ANY (m.seats)
            JOIN playing ON playing.id = e.version
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
            JOIN matches m ON m.edition = a.edition AND m.number = a.number
            JOIN entrants e ON e.edition = a.edition AND e.entrant = ANY (m.seats)
            JOIN playing ON playing.id = e.version
            WHERE a.state = 'leased' AND a.second_worker IN (SELECT worker FROM ours)
        )";
    sqlx::query_scalar(statement).bind(token).bind(digest.as_slice()).fetch_one(db).await
}

impl FromRow<'_, PgRow> for LeaseDetails {
    fn from_row(row: &PgRow) -> Result<Self> {
        let work = match row.try_get("edition")? {
            Some(edition) => {
                let number = row.try_get("first_match")?;
                LeasedWork::Matches(MatchId { edition, number }, row.try_get("count")?)
            }
            None => LeasedWork::Trial(row.try_get("bot")?, row.try_get("version")?),
        };
        let worker = row.try_get("worker")?;
        let tournament = row.try_get("tournament")?;
        Ok(Self { worker, tournament, work })
    }
}
