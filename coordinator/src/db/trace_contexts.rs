//! Trace contexts of versions and editions, if traces are exported. Later spans of the same traces
//! use them as parents.

use arbiter_proto::ids::{EditionId, Lease, VersionId};
use arbiter_proto::trace::TraceParent;
use sqlx::{PgExecutor, Result};

/// What a trace is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A version, from its submission to its first edition.
    Version(VersionId),
    /// An edition, from its opening to its official leaderboard.
    Edition(EditionId),
}

impl Subject {
    /// Its key in the table.
    fn key(self) -> (&'static str, i32) {
        match self {
            Self::Version(version) => ("version", version.0),
            Self::Edition(edition) => ("edition", edition.0),
        }
    }
}

/// Stores the trace context of a subject.
pub async fn store(db: impl PgExecutor<'_>, of: Subject, parent: &TraceParent) -> Result<()> {
    let (subject, id) = of.key();
    let statement = "
        INSERT INTO trace_contexts (subject, id, parent) VALUES ($1, $2, $3)
        ON CONFLICT (subject, id) DO UPDATE SET parent = excluded.parent";
    let query = sqlx::query(statement).bind(subject).bind(id).bind(parent.to_string());
    query.execute(db).await.map(drop)
}

/// The trace context of a subject, if it is stored.
pub async fn find(db: impl PgExecutor<'_>, of: Subject) -> Result<Option<TraceParent>> {
    let (subject, id) = of.key();
    let statement = "SELECT parent FROM trace_contexts WHERE subject = $1 AND id = $2";
    let query = sqlx::query_scalar(statement).bind(subject).bind(id);
    let row: Option<String> = query.fetch_optional(db).await?;
    Ok(row.and_then(|parent| parent.parse().ok()))
}

/// Replaces the trace context of a version, if the lease of its trial is valid and no edition
/// includes the version yet.
pub async fn update_version(
    db: impl PgExecutor<'_>,
    trial: Lease,
    parent: &TraceParent,
) -> Result<()> {
    let Some(version) = trial.version() else { return Ok(()) };
    let statement = "
        UPDATE trace_contexts SET parent = $2 WHERE subject = 'version' AND id = $1
          AND EXISTS (SELECT FROM trials t
                      WHERE t.version = $1 AND t.attempt = $3 AND t.state = 'leased')";
    let query = sqlx::query(statement).bind(version).bind(parent.to_string());
    query.bind(trial.attempt).execute(db).await.map(drop)
}

/// Removes and returns the trace contexts of these versions and of earlier versions of the same
/// bots, oldest version first.
pub async fn take_versions(
    db: impl PgExecutor<'_>,
    versions: &[VersionId],
) -> Result<Vec<TraceParent>> {
    let statement = "
        WITH taken AS (
            DELETE FROM trace_contexts t USING versions v, versions shown
            WHERE t.subject = 'version' AND v.id = t.id
              AND shown.bot = v.bot AND shown.id >= v.id AND shown.id = ANY ($1)
            RETURNING t.id, t.parent
        )
        SELECT parent FROM taken ORDER BY id";
    let parents: Vec<String> = sqlx::query_scalar(statement).bind(versions).fetch_all(db).await?;
    Ok(parents.iter().filter_map(|parent| parent.parse().ok()).collect())
}

/// Deletes the trace context of a version that no edition will include, if it failed this trial.
pub async fn delete_failed(db: impl PgExecutor<'_>, trial: Lease) -> Result<()> {
    let Some(version) = trial.version() else { return Ok(()) };
    let statement = "
        DELETE FROM trace_contexts WHERE subject = 'version' AND id = $1
          AND EXISTS (SELECT FROM trials t
                      WHERE t.version = $1 AND t.attempt = $2 AND t.state = 'failed')";
    let query = sqlx::query(statement).bind(version).bind(trial.attempt);
    query.execute(db).await.map(drop)
}

/// Removes and returns the trace context of an edition that is over.
pub async fn take_edition(
    db: impl PgExecutor<'_>,
    edition: EditionId,
) -> Result<Option<TraceParent>> {
    let statement =
        "DELETE FROM trace_contexts WHERE subject = 'edition' AND id = $1 RETURNING parent";
    let parent: Option<String> =
        sqlx::query_scalar(statement).bind(edition).fetch_optional(db).await?;
    Ok(parent.and_then(|parent| parent.parse().ok()))
}
