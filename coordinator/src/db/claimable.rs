//! Finds work that can be leased, in one query without writes or locks.

use arbiter_proto::ids::TournamentId;
use sqlx::{PgExecutor, Result};

/// Work that can be leased. Another transaction may lease it first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimableWork {
    /// Whether a version waits for its trial.
    pub trial: bool,
    /// The tournaments with a running edition and pending lots, oldest first.
    pub tournaments: Vec<TournamentId>,
}

/// Finds the work that can be leased now.
pub async fn find(db: impl PgExecutor<'_>) -> Result<ClaimableWork> {
    // With an `EXISTS` for the lots, the cached plan may be a join that reads all pending lots. The
    // first pending lot of a tournament is one index lookup.
    let statement = "
        SELECT EXISTS (
            SELECT FROM trials t
            JOIN versions v ON v.id = t.version
            JOIN bots b ON b.id = v.bot
            JOIN tournaments c ON c.id = b.tournament
            WHERE t.state = 'waiting' AND (t.not_before IS NULL OR t.not_before <= (SELECT database_clock()))
                AND b.withdrawn_at IS NULL AND c.state = 'open'
        ), ARRAY(
            SELECT tournament FROM editions e
            WHERE state = 'running' AND (
                SELECT true FROM lots WHERE tournament = e.tournament AND state = 'pending'
                ORDER BY expected_ms DESC, number LIMIT 1
            )
            ORDER BY tournament
        )";
    let (trial, tournaments) = sqlx::query_as(statement).fetch_one(db).await?;
    Ok(ClaimableWork { trial, tournaments })
}
