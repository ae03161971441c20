//! Standing down: a bot that forfeits too much of an edition takes no part in the next ones.
//!
//! The tournament file says how much is too much (`[submissions] stand_down_percent`,
//! `stand_down_after`). It is looked at whenever results were counted. What is stood down is the
//! version that forfeited: a later version enters as if nothing had happened, and an organiser can
//! reinstate the bot. A new edition is due without it, as after a withdrawal; it takes over what
//! the others have played among themselves.

use arbiter_proto::ids::EditionId;
use sqlx::{Error, PgPool};
use time::OffsetDateTime;

use crate::db::bots::{self, StoodDown};
use crate::db::{audit, tournaments};

/// Stands down who forfeited too much in an edition, as its standings are now.
///
/// # Errors
/// If the database fails.
pub async fn stand_down(
    pool: &PgPool,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<Vec<StoodDown>, Error> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let stood_down = bots::stand_down(&mut *db, edition, now).await?;
    if let Some(first) = stood_down.first() {
        tournaments::changed(&mut *db, first.tournament, now).await?;
    }
    for StoodDown { tournament_name, name, reason, .. } in &stood_down {
        let (subject, detail) = (format!("{tournament_name} {name}"), serde_json::json!(reason));
        audit::write(&mut *db, None, "stand down", &subject, Some(&detail), now).await?;
    }
    transaction.commit().await?;
    Ok(stood_down)
}
