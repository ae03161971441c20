//! The planned matches of an edition.

use arbiter_proto::ids::MatchNumber;
use arbiter_proto::v1::{LeaderboardRef, ListMatchesRequest};
use arbiter_ranking::Entrant;

use super::{Caller, DefaultEdition, Result, Service, ServiceError};
use crate::db::editions::Edition;
use crate::db::entrants::Roster;
use crate::db::matches::{self, Match};

/// Planned matches of an edition, by number.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) edition: Edition,
    pub(crate) roster: Roster,
    pub(crate) matches: Vec<Match>,
}

impl Service {
    /// Planned matches of an edition. Without a number, of the newest edition.
    pub(crate) async fn planned_matches(
        &self,
        caller: &Caller,
        ListMatchesRequest { tournament, edition, bot, after, limit, .. }: ListMatchesRequest,
    ) -> Result<Planned> {
        let board = LeaderboardRef { tournament, edition };
        let (edition, _) = self.edition_of(Some(board), DefaultEdition::Newest, caller).await?;
        let roster = Roster::of(&self.pool, edition.id).await?;
        let entrant = match bot.as_str() {
            "" => None,
            name => Some(roster.find(name).ok_or_else(|| {
                let error = format!("there is no bot `{name}` in edition {}", edition.number);
                ServiceError::new(super::ErrorKind::NotFound, error)
            })?),
        };
        let first = MatchNumber(after.map_or(0, |after| after.saturating_add(1)).max(0));
        let _permit = self.permit(caller).await?;
        let matches = matches::planned(&self.pool, edition.scope(), first, entrant, limit).await?;
        Ok(Planned { edition, roster, matches })
    }

    /// How often each bot of an edition has each seat.
    pub(crate) async fn seat_counts(
        &self,
        caller: &Caller,
        edition: &Edition,
    ) -> Result<Vec<(Entrant, Vec<i64>)>> {
        let _permit = self.permit(caller).await?;
        Ok(matches::seat_counts(&self.pool, edition.scope()).await?)
    }
}
