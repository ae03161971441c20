//! Attempts that ended without results, through no bot's fault.

use arbiter_proto::ids::{Attempt, EditionId, LotId, LotNumber};
use sqlx::{Error, FromRow, PgExecutor};
use time::OffsetDateTime;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Fault {
    /// The lot.
    #[sqlx(try_from = "i64")]
    pub lot: LotNumber,
    /// Which lease of it failed.
    #[sqlx(try_from = "i16")]
    pub attempt: Attempt,
    /// Why.
    pub reason: String,
    /// When.
    pub at: OffsetDateTime,
}

/// The faults of an edition, the newest first: at most 1000 of them.
///
/// # Errors
/// If the database fails.
pub async fn list(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<Fault>, Error> {
    let statement = "
        SELECT lot, attempt, reason, at FROM faults WHERE edition = $1
        ORDER BY id DESC LIMIT 1000";
    sqlx::query_as(statement).bind(edition.0).fetch_all(db).await
}

/// The faults of a lot, the newest first.
///
/// # Errors
/// If the database fails.
pub async fn of_lot(db: impl PgExecutor<'_>, lot: LotId) -> Result<Vec<Fault>, Error> {
    let statement = "
        SELECT lot, attempt, reason, at FROM faults WHERE edition = $1 AND lot = $2
        ORDER BY attempt DESC";
    sqlx::query_as(statement).bind(lot.edition.0).bind(lot.number.0).fetch_all(db).await
}
