//! What there is to lease, seen at a glance: one look that writes and locks nothing.

use arbiter_proto::ids::EditionId;
use sqlx::{PgExecutor, Result};

/// What may be leased. Somebody else may be faster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// Whether a version waits for its trial.
    pub trial: bool,
    /// The editions being played that have pending lots, the oldest first.
    pub editions: Vec<EditionId>,
}

/// Looks what may be leased now.
pub async fn look(db: impl PgExecutor<'_>) -> Result<Offers> {
    // An `EXISTS` for the lots could become a join, which the plan that is kept may begin with all
    // pending lots there are. The first one of an edition is found at its place in the index.
    let statement = "
        SELECT EXISTS (
            SELECT FROM trials t
            JOIN versions v ON v.id = t.version
            JOIN bots b ON b.id = v.bot
            JOIN tournaments c ON c.id = b.tournament
            WHERE t.state = 'waiting' AND (t.not_before IS NULL OR t.not_before <= (SELECT database_clock()))
                AND b.withdrawn_at IS NULL AND c.state = 'open'
        ), ARRAY(
            SELECT id FROM editions e
            WHERE state = 'running' AND (
                SELECT true FROM lots WHERE edition = e.id AND state = 'pending'
                ORDER BY expected_ms DESC, number LIMIT 1
            )
            ORDER BY id
        )";
    let (trial, editions) = sqlx::query_as(statement).fetch_one(db).await?;
    Ok(Offers { trial, editions })
}
