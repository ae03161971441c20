//! Public beacons: their values are given by organisers and shown to all.

use arbiter_proto::v1::{self, GiveBeaconRequest};
use tonic::Status;

use super::status::database;
use super::tournament::{end_error, open_error};
use super::{Shared, Who, micros};
use crate::db::tournaments::{Beacon, Tournament};
use crate::tournament::beacon::{self, BeaconError};

impl Shared {
    /// Takes the value of a tournament's beacon.
    pub(super) async fn take_beacon(
        &self,
        who: &Who,
        request: &GiveBeaconRequest,
    ) -> Result<Tournament, Status> {
        let GiveBeaconRequest { tournament, value } = request;
        let found = self.tournament(tournament).await?;
        let given = beacon::give(&self.queue, found.id, value, Some(who.id), self.now()).await;
        let (after, opened) = given.map_err(refusal)?;
        if opened.is_some() {
            self.dispatcher.news();
        }
        self.changes.tell();
        tracing::info!(token = %who.id, tournament = after.name, "the beacon's value is given");
        Ok(after)
    }

    /// The beacon of the tournament of this name.
    pub(crate) async fn beacon_of(&self, tournament: &str) -> Result<Option<v1::Beacon>, Status> {
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
            given_at_us: micros(value.given_at),
            first_edition: value.first_edition,
        },
    }
}

fn refusal(error: BeaconError) -> Status {
    match error {
        BeaconError::Database(error) => database(error),
        BeaconError::State(error) => end_error(error),
        BeaconError::Open(cause) => {
            let status = open_error(cause);
            let told = format!("no edition can be opened with the value: {}", status.message());
            Status::new(status.code(), told)
        }
        BeaconError::Value(_) => Status::invalid_argument(error.to_string()),
        BeaconError::Stopped => Status::unavailable(error.to_string()),
        BeaconError::Settings { .. } => Status::internal(error.to_string()),
        BeaconError::Unnamed { .. } | BeaconError::Early { .. } | BeaconError::Given { .. } => {
            Status::failed_precondition(error.to_string())
        }
    }
}
