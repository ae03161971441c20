//! The audit log: who changed what. Entries are never changed or deleted.
//!
//! An entry is written in the transaction of its change, so the change and its entry are stored
//! together or not at all. Its subject begins with the name of the tournament, unless it is about a
//! token or a worker. The values before and after the change are in its detail, as `before` and
//! `after`.

use arbiter_proto::ids::TokenId;
use serde_json::Value;
use sqlx::{FromRow, PgExecutor, Result};
use time::OffsetDateTime;

use super::tokens::Role;

/// A change.
#[derive(Clone, Debug, PartialEq, FromRow)]
pub struct Change {
    /// Its number. Later changes have greater numbers.
    pub id: i64,
    /// When it was made.
    pub at: OffsetDateTime,
    /// The token that made it; `None` if the program made it.
    pub token: Option<i32>,
    /// The token's name.
    pub name: Option<String>,
    /// The token's role.
    pub role: Option<Role>,
    /// The action.
    pub action: String,
    /// The subject of the change.
    pub subject: String,
    /// Further details.
    pub detail: Option<Value>,
}

/// A filter for changes. Fields that are `None` match every change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeFilter {
    /// Only changes of this tournament.
    pub tournament: Option<String>,
    /// Only changes made with tokens of this name or id.
    pub who: Option<String>,
    /// Only changes made at this time or later.
    pub since: Option<OffsetDateTime>,
    /// Only changes with smaller numbers than this one.
    pub before: Option<i64>,
}

/// Records a change.
pub async fn write(
    db: impl PgExecutor<'_>,
    token: Option<TokenId>,
    action: &str,
    subject: &str,
    detail: Option<&Value>,
    now: OffsetDateTime,
) -> Result<()> {
    let statement =
        "INSERT INTO audit_log (token, action, subject, detail, at) VALUES ($1, $2, $3, $4, $5)";
    let query = sqlx::query(statement).bind(token).bind(action);
    query.bind(subject).bind(detail).bind(now).execute(db).await.map(drop)
}

/// The latest changes, newest first: at most 1000.
pub async fn latest(db: impl PgExecutor<'_>) -> Result<Vec<Change>> {
    find(db, &ChangeFilter::default()).await
}

/// The latest changes that pass the filter, newest first: at most 1000.
pub async fn find(db: impl PgExecutor<'_>, filter: &ChangeFilter) -> Result<Vec<Change>> {
    let ChangeFilter { tournament, who, since, before } = filter;
    let statement = "
        SELECT a.id, a.at, a.token, t.name, t.role, a.action, a.subject, a.detail
        FROM audit_log a LEFT JOIN tokens t ON t.id = a.token
        WHERE ($1::text IS NULL
                OR (split_part(a.subject, ' ', 1) = $1 AND a.action NOT LIKE 'token %'
                    AND a.action NOT LIKE 'worker %'))
            AND ($2::text IS NULL OR t.name = $2 OR t.id::text = $2)
            AND ($3::timestamptz IS NULL OR a.at >= $3)
            AND ($4::bigint IS NULL OR a.id < $4)
        ORDER BY a.id DESC LIMIT 1000";
    let query = sqlx::query_as(statement).bind(tournament).bind(who);
    query.bind(since).bind(before).fetch_all(db).await
}
