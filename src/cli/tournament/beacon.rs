//! `arbiter tournament beacon T VALUE`: the value of a tournament's public beacon, and how it is shown.

use arbiter_proto::v1::{self, SetBeaconRequest, Tournament};
use clap::Args;
use serde_json::{Value, json};

use super::list::tournament_json;
use crate::cli::client::AnswerArgs;
use crate::failure::Failure;
use crate::output::{moment, moment_json};

/// Give the public beacon of a tournament its value, once entry has closed.
#[derive(Debug, Args)]
#[command(
    after_help = "A tournament file may name a beacon: a value that others publish after entry \
has closed. The
final edition is played anew with a seed that follows from the committed seed and this value (BLAKE3
of `beacon/VALUE`, keyed with the committed seed), so that no organiser can choose the seed.

A value has ASCII letters and digits only. It is stored, shown and hashed in one spelling: in lower
case, without a leading 0x and leading zeros. It is given once and never changes; the same value
again changes nothing. Everybody sees it at once.

Example:
  arbiter tournament beacon finals 00000000000000000001a17d7f2a4c"
)]
pub(super) struct Beacon {
    /// The tournament.
    #[arg(value_name = "T")]
    tournament: String,
    /// The value, as it is published.
    #[arg(value_name = "VALUE")]
    value: String,
    #[command(flatten)]
    answer: AnswerArgs,
}

impl Beacon {
    pub(super) fn run(self) -> Result<(), Failure> {
        let Self { tournament, value, answer } = self;
        let found = answer.client.ask(SetBeaconRequest { tournament, value })?;
        answer.print(
            || tournament_json(&found),
            |out| {
                out.line(&beacon_line(&found))?;
                out.line(&next(&found))
            },
        )
    }
}

/// What comes of a value.
fn next(found: &Tournament) -> String {
    let first = found.beacon.as_ref().map_or(0, |beacon| beacon.first_edition);
    let edition = found.editions.iter().find(|edition| edition.number >= first);
    match edition {
        Some(edition) => format!(
            "edition {} is {}, and played anew with the seed that follows from it",
            edition.number, edition.state
        ),
        None => format!("start the tournament: arbiter tournament start {}", found.name),
    }
}

/// The beacon of a tournament, in a line for people.
pub(super) fn beacon_line(found: &Tournament) -> String {
    match &found.beacon {
        None => "public beacon: none; the organiser chose the seed".to_owned(),
        Some(v1::Beacon { name, value, .. }) if value.is_empty() => {
            format!("public beacon: {name}; its value is awaited")
        }
        Some(v1::Beacon { name, value, set_at_us, first_edition }) => format!(
            "public beacon: {name}; its value {value}, given {}, decides editions from \
             {first_edition} on",
            moment(*set_at_us)
        ),
    }
}

/// The beacon of a tournament; null if it names none.
pub(super) fn beacon_json(beacon: Option<&v1::Beacon>) -> Value {
    let Some(beacon) = beacon else { return Value::Null };
    let given = !beacon.value.is_empty();
    json!({
        "name": beacon.name,
        "value": given.then_some(&beacon.value),
        "set_at": if given { moment_json(beacon.set_at_us) } else { Value::Null },
        "first_edition": given.then_some(beacon.first_edition),
    })
}
