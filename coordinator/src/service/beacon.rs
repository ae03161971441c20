//! Public beacons: organisers enter their values, which are public.

use crate::access::Role;
use arbiter_proto::v1::{self, SetBeaconRequest};

use super::{Caller, Result, Service, micros};
use crate::db::tournaments::Beacon;
use crate::tournament::beacon;

impl Service {
    /// Stores the value of a tournament's beacon.
    pub(crate) async fn set_beacon(
        &self,
        caller: &Caller,
        SetBeaconRequest { tournament, value }: SetBeaconRequest,
    ) -> Result<v1::Tournament> {
        let principal = caller.require(Role::Organiser)?;
        let id = self.tournament(&tournament).await?.id;
        let (updated, new_edition) =
            beacon::set_value(&self.queue, id, &value, Some(principal.id), self.now()).await?;
        if new_edition.is_some() {
            self.dispatcher.news();
        }
        self.changes.notify();
        tracing::info!(token = %principal.id, tournament = updated.name, "beacon value stored");
        self.tournament_message(updated, caller).await
    }

    /// The beacon of a tournament.
    pub(crate) async fn beacon_of(&self, tournament: &str) -> Result<Option<v1::Beacon>> {
        Ok(self.tournament(tournament).await?.beacon.as_ref().map(message))
    }
}

/// A beacon as a message.
pub(super) fn message(beacon: &Beacon) -> v1::Beacon {
    let Beacon { name, value } = beacon;
    let name = name.clone();
    match value {
        None => v1::Beacon { name, ..v1::Beacon::default() },
        Some(value) => v1::Beacon {
            name,
            value: value.text.clone(),
            set_at_us: micros(value.given_at),
            first_edition: value.first_edition,
        },
    }
}
