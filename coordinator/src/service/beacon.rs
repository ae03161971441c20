//! Public beacons: their values are given by organisers and shown to all.

use crate::access::Role;
use arbiter_proto::v1::{self, SetBeaconRequest};

use super::{Caller, Result, Service, micros};
use crate::db::tournaments::Beacon;
use crate::tournament::beacon::{self};

impl Service {
    /// Takes the value of a tournament's beacon.
    pub(crate) async fn set_beacon(
        &self,
        caller: &Caller,
        SetBeaconRequest { tournament, value }: SetBeaconRequest,
    ) -> Result<v1::Tournament> {
        let who = caller.require(Role::Organiser)?;
        let found = self.tournament(&tournament).await?;
        let given = beacon::give(&self.queue, found.id, &value, Some(who.id), self.now()).await;
        let (after, opened) = given?;
        if opened.is_some() {
            self.dispatcher.news();
        }
        self.changes.tell();
        tracing::info!(token = %who.id, tournament = after.name, "the beacon's value is given");
        self.described(after, caller).await
    }

    /// The beacon of the tournament of this name.
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
