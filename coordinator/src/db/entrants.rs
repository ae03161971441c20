//! The entrants of an edition by name.

use arbiter_proto::ids::EditionId;
use sqlx::{Error, FromRow, PgExecutor};

/// An entrant as others know it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct Named {
    /// The bot's name.
    pub name: String,
    /// The number of its version.
    pub version: i32,
    /// BLAKE3 of its bundle.
    pub digest: Vec<u8>,
}

/// The entrants, in the order of their numbers in the edition.
///
/// # Errors
/// If the database fails.
pub async fn named(db: impl PgExecutor<'_>, edition: EditionId) -> Result<Vec<Named>, Error> {
    let statement = "
        SELECT b.name, v.number AS version, v.digest
        FROM entrants e JOIN bots b ON b.id = e.bot JOIN versions v ON v.id = e.version
        WHERE e.edition = $1 ORDER BY e.entrant";
    sqlx::query_as(statement).bind(edition.0).fetch_all(db).await
}
