//! Matches that do not belong to some editions although an earlier one added them.

use std::collections::HashSet;

use arbiter_proto::ids::{MatchNumber, TournamentId};
use sqlx::{PgExecutor, Result};

use super::editions::{EditionScope, members};

/// Takes matches out of a new edition, and so out of later ones.
pub async fn begin(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    numbers: &[MatchNumber],
) -> Result<()> {
    let statement = "
        INSERT INTO absences (tournament, number, since)
        SELECT $1, u.number, $2 FROM unnest($3::bigint[]) AS u (number) ORDER BY u.number";
    let query = sqlx::query(statement).bind(edition.tournament).bind(edition.number);
    query.bind(numbers).execute(db).await.map(drop)
}

/// Takes all matches of the edition `before` out of a new edition.
pub async fn begin_all(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    before: EditionScope,
) -> Result<()> {
    let statement = concat!(
        "INSERT INTO absences (tournament, number, since)
        SELECT $1, m.number, $4 FROM matches m WHERE ",
        members!("m"),
        " ORDER BY m.number"
    );
    sqlx::query_with(statement, before.arguments()).bind(edition.number).execute(db).await.map(drop)
}

/// Brings matches back into the newest edition.
pub async fn end(
    db: impl PgExecutor<'_>,
    edition: EditionScope,
    numbers: &[MatchNumber],
) -> Result<()> {
    // They may have been taken out of this edition a moment ago.
    let statement = "
        WITH just_begun AS (
            DELETE FROM absences
            WHERE tournament = $1 AND number = ANY ($3) AND until IS NULL AND since = $2
        )
        UPDATE absences SET until = $2
        WHERE tournament = $1 AND number = ANY ($3) AND until IS NULL AND since < $2";
    let query = sqlx::query(statement).bind(edition.tournament).bind(edition.number);
    query.bind(numbers).execute(db).await.map(drop)
}

/// The matches `firsts[i] … pasts[i] - 1`, for each i, that the newest edition does not have.
pub async fn in_ranges(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    firsts: &[i64],
    pasts: &[i64],
) -> Result<HashSet<MatchNumber>> {
    let statement = "
        SELECT a.number FROM unnest($2::bigint[], $3::bigint[]) AS range (first_match, past)
        CROSS JOIN LATERAL (
            SELECT number FROM absences
            WHERE tournament = $1 AND number >= range.first_match AND number < range.past
              AND until IS NULL OFFSET 0
        ) AS a";
    let query = sqlx::query_scalar(statement).bind(tournament).bind(firsts).bind(pasts);
    let numbers: Vec<MatchNumber> = query.fetch_all(db).await?;
    Ok(numbers.into_iter().collect())
}

/// The class of the advisory lock of the matches that the newest edition consists of. The other key
/// is the tournament.
const MEMBERS_LOCK: i32 = 0x6d65_6d62;

/// Waits until no other transaction counts matches of a tournament or changes which ones its newest
/// edition has, and prevents them until this transaction ends.
pub async fn lock(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<()> {
    let statement = "SELECT pg_advisory_xact_lock($1, $2)";
    sqlx::query(statement).bind(MEMBERS_LOCK).bind(tournament).execute(db).await.map(drop)
}

/// Prevents changes of the newest edition's matches until the transaction ends. Returns whether no
/// other transaction is changing them.
pub async fn try_lock_shared(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<bool> {
    let statement = "SELECT pg_try_advisory_xact_lock_shared($1, $2)";
    sqlx::query_scalar(statement).bind(MEMBERS_LOCK).bind(tournament).fetch_one(db).await
}
