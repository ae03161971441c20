//! Extends an edition: adds the lots of its new matches to the queue, and lets the edition have
//! them.
//!
//! Each new match must be in one lot, and each lot must wait for as many lots as the order names.
//! Otherwise a match would never be played, and its edition would never be complete.

use arbiter_proto::ids::{EditionId, MatchNumber};
use sqlx::{Error, PgConnection};

use crate::db::editions::{self, EditionScope};
use crate::db::lots::{self, InitialLot, Order};

/// Why an edition cannot be extended.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The plan is invalid.
    #[error("the plan of edition {0} is invalid: {1}")]
    Invalid(EditionId, String),
    /// The database failed.
    #[error("cannot store a plan: {0}")]
    Database(#[from] Error),
}

/// What an edition gets: new matches, which are stored already, and matches of earlier editions.
#[derive(Debug)]
pub struct Extension<L, O> {
    /// The lots of the new matches, in order.
    pub lots: L,
    /// The dependencies between lots.
    pub order: O,
    /// The number after the last new match.
    pub end: i64,
    /// The number of its first match, which may be one of an earlier edition.
    pub from: i64,
    /// How many matches it gets.
    pub matches: i64,
    /// Whether more matches may follow.
    pub open_ended: bool,
}

/// Extends an edition, in the caller's transaction.
///
/// # Errors
/// If the lots are not those of the new matches, or the edition accepts no more matches.
pub async fn extend(
    db: &mut PgConnection,
    edition: EditionScope,
    extension: Extension<impl Iterator<Item = InitialLot>, impl Iterator<Item = Order>>,
) -> Result<(), PlanError> {
    let EditionScope { id, tournament, end: first, .. } = edition;
    let invalid = |reason| Err(PlanError::Invalid(id, reason));
    let Extension { lots, order, end, from, matches, open_ended } = extension;
    let mut cover = Cover { next: first, is_ordered: false, error: None };
    let lots = lots.inspect(|lot| cover.add(lot));
    lots::copy_in(&mut *db, tournament, lots).await?;
    let ordered = lots::copy_order_in(&mut *db, tournament, order).await?;
    if let Some(reason) = cover.error.take() {
        return invalid(reason);
    }
    if cover.next != end {
        return invalid(format!("the lots hold {} matches of {}", cover.next - first, end - first));
    }
    if cover.is_ordered || ordered > 0 {
        let first = MatchNumber(first);
        if let Some(reason) = lots::find_order_error(&mut *db, tournament, first).await? {
            return invalid(reason);
        }
    }
    let extended = EditionScope { from, end, ..edition };
    if !editions::extend(db, extended, matches, open_ended).await? {
        return invalid("the edition accepts no more matches".to_owned());
    }
    Ok(())
}

/// Checks that lots hold consecutive matches.
struct Cover {
    /// The match after those of the lots until now.
    next: i64,
    /// Whether a lot waits for others.
    is_ordered: bool,
    /// The first match that is in no lot or in two lots.
    error: Option<String>,
}

impl Cover {
    fn add(&mut self, InitialLot { lot, .. }: &InitialLot) {
        let number = lot.number.0;
        if number != self.next && self.error.is_none() {
            self.error = Some(if number > self.next {
                format!("match {} is in no lot", self.next)
            } else {
                format!("match {number} is in two lots")
            });
        }
        self.next += i64::from(lot.count);
        self.is_ordered |= lot.blockers > 0;
    }
}
