//! Standing down: a bot that forfeits too much of an edition, or that faults follow around, takes no
//! part in the next ones.
//!
//! The tournament file says how much is too much (`[submissions] stand_down_percent`,
//! `stand_down_after`). It is looked at whenever results were counted. What is stood down is the
//! version that forfeited: a later version enters as if nothing had happened, and an organiser can
//! reinstate the bot. A new edition is due without it, as after a withdrawal; it takes over what
//! the others have played among themselves.
//!
//! A fault is no bot's by itself, and a match that had too many is set aside. Where matches are set
//! aside, [`fault_attribution`] tells from the faults of the edition whether they follow one bot around, wherever
//! it is played: that bot is stood down as if it had forfeited them. Faults that workers have with
//! all bots stand none of them down.

pub mod fault_attribution;

use arbiter_proto::ids::EditionId;
use sqlx::{PgConnection, PgPool, Result};
use time::OffsetDateTime;

use crate::db::bots::{self, StoodDown};
use crate::db::{audit_log, faults, tournaments};

/// Stands down who forfeited too much in an edition, as its standings are now.
pub async fn suspend_for_forfeits(
    pool: &PgPool,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<Vec<StoodDown>> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let stood_down = bots::stand_down(&mut *db, edition, now).await?;
    note(db, &stood_down, now).await?;
    transaction.commit().await?;
    Ok(stood_down)
}

/// Stands those down whom the faults of an edition follow around, as they are known now.
pub async fn suspend_for_faults(
    pool: &PgPool,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<Vec<StoodDown>> {
    let faults = faults::of_matches(pool, edition).await?;
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let played = faults::played_since(pool, edition).await?;
    let blamed = fault_attribution::attribute_faults(&faults, &played);
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let mut stood_down = Vec::new();
    for blamed in blamed {
        let (entrant, reason) = (blamed.entrant, blamed.to_string());
        let done = bots::stand_down_entrant(&mut *db, edition, entrant, &reason, now).await?;
        stood_down.extend(done);
    }
    note(db, &stood_down, now).await?;
    transaction.commit().await?;
    Ok(stood_down)
}

/// Has an edition without these bots become due, and writes down why they are stood down.
async fn note(db: &mut PgConnection, stood_down: &[StoodDown], now: OffsetDateTime) -> Result<()> {
    if let Some(first) = stood_down.first() {
        tournaments::changed(&mut *db, first.tournament, now).await?;
    }
    for StoodDown { tournament_name, name, reason, .. } in stood_down {
        let (subject, detail) = (format!("{tournament_name} {name}"), serde_json::json!(reason));
        audit_log::write(&mut *db, None, "stand down", &subject, Some(&detail), now).await?;
    }
    Ok(())
}
