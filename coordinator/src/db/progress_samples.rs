//! The speed of editions, from the numbers of played matches at two times.
//!
//! Only matches that were played for an edition count, not those that it shares with editions
//! before.

use arbiter_proto::ids::EditionId;
use sqlx::{FromRow, PgExecutor, Result};
use time::{Duration, OffsetDateTime};

/// The minimum time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::MINUTE;

/// The progress of an edition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRow)]
pub struct Pace {
    /// Number of matches that were played for it and are counted now.
    pub played: i64,
    /// The same number at an earlier time.
    pub before: i64,
    /// The earlier time.
    pub before_at: OffsetDateTime,
}

/// Stores the progress of running editions, if their last sample is older than `SAMPLE_INTERVAL`.
pub async fn mark(db: impl PgExecutor<'_>, now: OffsetDateTime) -> Result<u64> {
    let statement = "
        INSERT INTO progress_samples AS p (edition, at, played, before_at, before_played)
        SELECT e.id, $1, f.played, $1, f.played
        FROM editions e JOIN progress f ON f.edition = e.id
        WHERE e.state = 'running'
          AND NOT EXISTS (SELECT FROM progress_samples p WHERE p.edition = e.id AND p.at > $2)
        ON CONFLICT (edition) DO UPDATE
        SET before_at = p.at, before_played = p.played, at = excluded.at, played = excluded.played
        WHERE p.at <= $2";
    let query = sqlx::query(statement).bind(now).bind(now - SAMPLE_INTERVAL);
    Ok(query.execute(db).await?.rows_affected())
}

/// The progress of an edition, if there is an earlier sample.
pub async fn of_edition(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Option<Pace>> {
    let statement = "
        SELECT p.before_at, p.before_played AS before, f.played
        FROM progress_samples p JOIN progress f ON f.edition = p.edition WHERE p.edition = $1";
    sqlx::query_as(statement).bind(edition).fetch_optional(db).await
}
