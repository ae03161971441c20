//! `arbiter tournament beacon T VALUE`: sets the value of a tournament's public beacon.

use arbiter_proto::v1::{self, SetBeaconRequest, Tournament};
use clap::Args;
use serde_json::{Value, json};

use super::list::tournament_json;
use crate::cli::client::ResponseArgs;
use crate::failure::Failure;
use crate::output::{moment, moment_json};

/// Set the value of a tournament's public beacon, after entry has closed.
#[derive(Debug, Args)]
#[command(
    after_help = "A tournament file can name a beacon: a value that a third party publishes after \
    entry has closed. The final edition is then played with a seed derived from the committed seed \
    and this value (BLAKE3 of `beacon/VALUE`, keyed with the committed seed), so no organiser can \
    choose the seed.

A value consists of ASCII letters and digits. It is stored, shown and hashed in lower case, \
    without a leading 0x and leading zeros. It is set once and never changes; setting the same \
    value again has no effect. It is public immediately.

Example:
  arbiter tournament beacon finals 00000000000000000001a17d7f2a4c"
)]
pub(super) struct Beacon {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The published value.
    #[arg(value_name = "VALUE")]
    value: String,
    #[command(flatten)]
    response: ResponseArgs,
}

impl Beacon {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, value, response } = self;
        let tournament = response.client.send(SetBeaconRequest { tournament, value })?;
        response.print(
            || tournament_json(&tournament),
            |out| {
                out.line(&beacon_line(&tournament))?;
                out.line(&next_step(&tournament))
            },
        )
    }
}

/// What happens next, after the value is set.
fn next_step(tournament: &Tournament) -> String {
    let first = tournament.beacon.as_ref().map_or(0, |beacon| beacon.first_edition);
    let edition = tournament.editions.iter().find(|edition| edition.number >= first);
    match edition {
        Some(edition) => format!(
            "edition {} is {}, played with the seed derived from the beacon",
            edition.number, edition.state
        ),
        None => format!("start the tournament: arbiter tournament start {}", tournament.name),
    }
}

/// Describes the beacon of a tournament in one line.
pub(super) fn beacon_line(tournament: &Tournament) -> String {
    match &tournament.beacon {
        None => "public beacon: none; the organiser chose the seed".to_owned(),
        Some(v1::Beacon { name, value, .. }) if value.is_empty() => {
            format!("public beacon: {name}; no value yet")
        }
        Some(v1::Beacon { name, value, set_at_us, first_edition }) => format!(
            "public beacon: {name}; value: {value}, set {}; it decides editions from \
             {first_edition} on",
            moment(*set_at_us)
        ),
    }
}

/// The beacon of a tournament as JSON; null if it names none.
pub(super) fn beacon_json(beacon: Option<&v1::Beacon>) -> Value {
    let Some(beacon) = beacon else { return Value::Null };
    let has_value = !beacon.value.is_empty();
    json!({
        "name": beacon.name,
        "value": has_value.then_some(&beacon.value),
        "set_at": if has_value { moment_json(beacon.set_at_us) } else { Value::Null },
        "first_edition": has_value.then_some(beacon.first_edition),
    })
}
