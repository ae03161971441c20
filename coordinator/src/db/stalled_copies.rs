//! Sessions that stall within `COPY`.
//!
//! The process of a coordinator may stop while it sends rows. Its transaction keeps its locks, and
//! no time limit of Postgres ends it: while the server waits for rows, the session is not idle, and
//! the server handles `statement_timeout` only when the next bytes arrive. Termination ends it at
//! once.

use std::time::Duration;

use sqlx::{PgExecutor, Result};

/// Ends all sessions of this program whose server process waits for rows of a `COPY` statement that
/// began at least this long ago. Returns their number.
///
/// Programs that copy rows for operators, such as `pg_restore`, have another application name.
pub async fn end(db: impl PgExecutor<'_>, limit: Duration) -> Result<i64> {
    let statement = "
        SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE datname = current_database() AND usename = current_user
          AND application_name = current_setting('application_name')
          AND state = 'active' AND wait_event = 'ClientRead'
          AND query_start <= clock_timestamp() - make_interval(secs => $1)";
    sqlx::query_scalar(statement).bind(limit.as_secs_f64()).fetch_one(db).await
}
