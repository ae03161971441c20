//! Suspension of bots: a bot that forfeits too many matches of an edition, or causes faults, does
//! not take part in later editions.
//!
//! The tournament file sets the limits (`[submissions] stand_down_percent`, `stand_down_after`).
//! They are checked whenever results are counted. The version that forfeited is suspended: a later
//! version enters normally, and an organiser can reinstate the bot. A new edition without the bot
//! becomes due, as after a withdrawal. It shares the matches of the other bots.
//!
//! A single fault is not attributed to a bot. When a match is set aside after too many faults,
//! [`fault_attribution`] checks whether the faults since the last complete edition occur with one
//! bot on any worker. Such a bot is suspended as if it had forfeited. A worker's faults with all
//! bots suspend no bot.

pub mod fault_attribution;

use arbiter_proto::ids::EditionId;
use sqlx::{PgConnection, PgPool, Result};
use time::OffsetDateTime;

use crate::db::bots::{self, SuspendedBot};
use crate::db::editions::EditionScope;
use crate::db::{audit_log, faults, tournaments};

/// Suspends the bots that forfeited too much in an edition, by its current standings.
pub async fn suspend_for_forfeits(
    pool: &PgPool,
    edition: EditionId,
    now: OffsetDateTime,
) -> Result<Vec<SuspendedBot>> {
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let suspended = bots::suspend_for_forfeits(&mut *db, edition, now).await?;
    record(db, &suspended, now).await?;
    transaction.commit().await?;
    Ok(suspended)
}

/// Suspends the entrants of an edition that cause faults, by the recent faults of its tournament.
pub async fn suspend_for_faults(
    pool: &PgPool,
    edition: EditionScope,
    now: OffsetDateTime,
) -> Result<Vec<SuspendedBot>> {
    let faults = faults::of_matches(pool, edition.tournament).await?;
    if faults.is_empty() {
        return Ok(Vec::new());
    }
    let played = faults::played_since(pool, edition.tournament).await?;
    let faulty_bots = fault_attribution::attribute_faults(&faults, &played);
    let mut transaction = pool.begin().await?;
    let db = &mut *transaction;
    let mut suspended = Vec::new();
    for bot in faulty_bots {
        let reason = bot.to_string();
        let rows = bots::suspend_entrant(&mut *db, edition.id, bot.entrant, &reason, now).await?;
        suspended.extend(rows);
    }
    record(db, &suspended, now).await?;
    transaction.commit().await?;
    Ok(suspended)
}

/// Makes an edition without these bots due, and adds the suspensions to the audit log.
async fn record(
    db: &mut PgConnection,
    suspended: &[SuspendedBot],
    now: OffsetDateTime,
) -> Result<()> {
    if let Some(first) = suspended.first() {
        tournaments::mark_changed(&mut *db, first.tournament, now).await?;
    }
    for SuspendedBot { tournament_name, name, reason, .. } in suspended {
        let subject = format!("{tournament_name} {name}");
        let detail = serde_json::json!(reason);
        audit_log::write(&mut *db, None, "stand down", &subject, Some(&detail), now).await?;
    }
    Ok(())
}
