//! Matches that organisers have declared void, and how such matches are found: by who reported them
//! and when. A match that was taken over into later editions is void by its original.

use arbiter_proto::ids::{EditionId, MatchId, MatchNumber, TokenId, TournamentId};
use sqlx::postgres::PgRow;
use sqlx::{Error, PgExecutor, Row as _};
use time::OffsetDateTime;

/// Which matches are wanted: all that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only those that the worker of this name reported.
    pub worker: Option<String>,
    /// Only those reported then or later.
    pub from: Option<OffsetDateTime>,
    /// Only those reported before then.
    pub to: Option<OffsetDateTime>,
}

/// The matches of a tournament that were played and fit, in order, unless they are void already.
pub async fn find(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    wanted: &Wanted,
) -> Result<Vec<MatchId>, Error> {
    let statement = "
        SELECT r.edition, r.number
        FROM editions e
        JOIN lots l ON l.edition = e.id
        CROSS JOIN LATERAL (
            SELECT edition, number, source_edition FROM results
            WHERE edition = l.edition AND number >= l.first AND number < l.first + l.count OFFSET 0
        ) AS r
        WHERE e.tournament = $1 AND l.reported_at IS NOT NULL AND r.source_edition IS NULL
          AND ($2::text IS NULL OR l.worker = (SELECT id FROM workers WHERE name = $2))
          AND ($3::timestamptz IS NULL OR l.reported_at >= $3)
          AND ($4::timestamptz IS NULL OR l.reported_at < $4)
          AND NOT EXISTS (
              SELECT FROM voids v WHERE v.edition = r.edition AND v.number = r.number)
        ORDER BY r.edition, r.number";
    let Wanted { worker, from, to } = wanted;
    let query = sqlx::query(statement).bind(tournament.0).bind(worker).bind(from).bind(to);
    super::fetch(query, db, id).await
}

/// The originals of these matches of a tournament, as far as they were played, each with whether it
/// is void already, in the order of `matches`.
pub async fn originals(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    matches: &[MatchId],
) -> Result<Vec<(MatchId, MatchId, bool)>, Error> {
    let statement = "
        SELECT u.edition AS named_edition, u.number AS named_number,
            original.edition, original.number,
            EXISTS (SELECT FROM voids v WHERE v.edition = original.edition
                AND v.number = original.number) AS void
        FROM unnest($2::int[], $3::bigint[]) WITH ORDINALITY AS u (edition, number, place)
        JOIN editions e ON e.id = u.edition AND e.tournament = $1
        JOIN results r ON r.edition = u.edition AND r.number = u.number
        CROSS JOIN LATERAL (SELECT coalesce(r.source_edition, r.edition) AS edition,
            coalesce(r.source_number, r.number) AS number) AS original
        ORDER BY u.place";
    let (editions, numbers) = columns(matches);
    let rows = sqlx::query(statement).bind(tournament.0).bind(editions).bind(numbers);
    let read = |row: &PgRow| {
        let edition = EditionId(row.try_get("named_edition")?);
        let number = MatchNumber(row.try_get("named_number")?);
        Ok((MatchId { edition, number }, id(row)?, row.try_get("void")?))
    };
    super::fetch(rows, db, read).await
}

/// The matches of an edition that were taken over, each with its original.
pub async fn taken_over(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Vec<(MatchNumber, MatchId)>, Error> {
    let statement = "
        SELECT number AS here, source_edition AS edition, source_number AS number
        FROM results WHERE edition = $1 AND source_edition IS NOT NULL";
    let read = |row: &PgRow| Ok((MatchNumber(row.try_get("here")?), id(row)?));
    super::fetch(sqlx::query(statement).bind(edition.0), db, read).await
}

/// What declarations of a tournament's matches lock, with its number; shared by transactions that take
/// results over.
const VOIDING: i32 = 0x766f_6964;

/// Keeps matches of an edition's tournament from being declared void until the transaction ends, so
/// that what it finds not to be void is taken over before it is.
///
/// # Errors
/// If a declaration takes too long, or the database fails.
pub async fn hold_off(db: impl PgExecutor<'_>, edition: EditionId) -> Result<(), Error> {
    let statement = "
        SELECT pg_advisory_xact_lock_shared($1, tournament) FROM editions WHERE id = $2";
    sqlx::query(statement).bind(VOIDING).bind(edition.0).execute(db).await.map(drop)
}

/// Waits until no transaction takes results of a tournament over, and keeps others from it until the
/// transaction ends.
///
/// # Errors
/// If they take too long, or the database fails.
pub async fn alone(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<(), Error> {
    let statement = "SELECT pg_advisory_xact_lock($1, $2)";
    sqlx::query(statement).bind(VOIDING).bind(tournament.0).execute(db).await.map(drop)
}

/// Declares matches void, and returns how many were not void before.
pub async fn add(
    db: impl PgExecutor<'_>,
    matches: &[MatchId],
    by: TokenId,
    reason: &str,
    now: OffsetDateTime,
) -> Result<u64, Error> {
    let statement = "
        INSERT INTO voids (edition, number, at, by, reason)
        SELECT u.edition, u.number, $3, $4, $5
        FROM unnest($1::int[], $2::bigint[]) AS u (edition, number)
        ON CONFLICT (edition, number) DO NOTHING";
    let (editions, numbers) = columns(matches);
    let query = sqlx::query(statement).bind(editions).bind(numbers).bind(now).bind(by.0);
    Ok(query.bind(reason).execute(db).await?.rows_affected())
}

/// Matches as two columns.
fn columns(matches: &[MatchId]) -> (Vec<i32>, Vec<i64>) {
    matches.iter().map(|id| (id.edition.0, id.number.0)).unzip()
}

/// The match that a row names.
fn id(row: &PgRow) -> Result<MatchId, Error> {
    let (edition, number) = (row.try_get("edition")?, row.try_get("number")?);
    Ok(MatchId { edition: EditionId(edition), number: MatchNumber(number) })
}
