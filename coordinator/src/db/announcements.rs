//! Announcements: news of organisers about a tournament.

use arbiter_proto::ids::TournamentId;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

/// Maximum number of announcements that are listed.
const MAX_LISTED: i64 = 100;

/// An announcement.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Announcement {
    /// Its number in the tournament, from 1.
    pub number: i32,
    /// When it was posted.
    pub at: OffsetDateTime,
    /// Markdown.
    pub text: String,
}

/// Adds an announcement, and returns its number. The caller has locked the tournament.
pub async fn add(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    text: &str,
    now: OffsetDateTime,
) -> Result<i32> {
    let statement = "
        INSERT INTO announcements (tournament, number, at, text)
        SELECT $1, 1 + coalesce(max(number), 0), $3, $2 FROM announcements WHERE tournament = $1
        RETURNING number";
    sqlx::query_scalar(statement).bind(tournament).bind(text).bind(now).fetch_one(db).await
}

/// Removes an announcement. Returns its text, or nothing if there is no such announcement.
pub async fn remove(
    db: impl PgExecutor<'_>,
    tournament: TournamentId,
    number: i32,
    now: OffsetDateTime,
) -> Result<Option<String>> {
    let statement = "
        UPDATE announcements SET removed_at = $3
        WHERE tournament = $1 AND number = $2 AND removed_at IS NULL RETURNING text";
    sqlx::query_scalar(statement).bind(tournament).bind(number).bind(now).fetch_optional(db).await
}

/// The announcements of a tournament, newest first, at most 100.
pub async fn list(db: impl PgExecutor<'_>, tournament: TournamentId) -> Result<Vec<Announcement>> {
    let statement = "
        SELECT number, at, text FROM announcements WHERE tournament = $1 AND removed_at IS NULL
        ORDER BY number DESC LIMIT $2";
    sqlx::query_as(statement).bind(tournament).bind(MAX_LISTED).fetch_all(db).await
}
