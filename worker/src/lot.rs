//! A lot as it is played: what came over the wire, with every doubt about it settled.

use arbiter_games::{BotName, GameName, Params, Seed};
use arbiter_proto::convert;
use arbiter_proto::ids::{Lease, MatchNumber};
use arbiter_proto::settings::Settings;
use arbiter_proto::v1;
use serde_json::{Map, Value};

/// Matches to be played under one lease.
#[derive(Clone, Debug)]
pub(crate) struct Lot {
    pub(crate) lease: Lease,
    /// What all matches have in common.
    pub(crate) settings: Settings,
    pub(crate) matches: Vec<Planned>,
}

/// A match of a lot.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) number: MatchNumber,
    pub(crate) seed: Seed,
    pub(crate) params: Params,
    /// Who sits where, seat 1 first.
    pub(crate) seats: Vec<Sitting>,
}

/// Who sits at a place.
#[derive(Clone, Debug)]
pub(crate) struct Sitting {
    pub(crate) name: BotName,
    /// The digest of the bot's bundle.
    pub(crate) digest: blake3::Hash,
    /// The files that it left before, packed.
    pub(crate) files: Vec<u8>,
}

impl Lot {
    /// Reads a lot whose lease is known.
    ///
    /// # Errors
    /// What is wrong with it; that is no bot's fault.
    pub(crate) fn read(lease: Lease, message: v1::Lot) -> Result<Self, String> {
        let game: GameName = message.game.parse().map_err(text)?;
        let settings: Settings = serde_json::from_str(&message.settings)
            .map_err(|error| format!("settings: {error}"))?;
        let matches = message.matches.into_iter().map(|played| {
            let number = played.number;
            planned(game, &settings, played).map_err(|why| format!("match {number}: {why}"))
        });
        let matches = matches.collect::<Result<Vec<_>, _>>()?;
        if matches.is_empty() {
            return Err("a lot without a match".to_owned());
        }
        Ok(Self { lease, settings, matches })
    }

    /// The digests of the bundles that are needed, each once.
    pub(crate) fn digests(&self) -> Vec<blake3::Hash> {
        let seats = self.matches.iter().flat_map(|planned| &planned.seats);
        let mut digests: Vec<_> = seats.map(|seat| seat.digest).collect();
        digests.sort_unstable_by_key(|digest| *digest.as_bytes());
        digests.dedup();
        digests
    }
}

fn planned(game: GameName, settings: &Settings, message: v1::Match) -> Result<Planned, String> {
    let v1::Match { number, seed, seats, params } = message;
    let mut all = settings.params.clone();
    if !params.is_empty() {
        let own: Map<String, Value> =
            serde_json::from_str(&params).map_err(|error| format!("params: {error}"))?;
        all.extend(own);
    }
    let params =
        Params::read(game, Value::Object(all)).map_err(|error| format!("params: {error}"))?;
    let seats = seats.into_iter().map(|v1::Seat { bot, digest, files }| {
        let digest = convert::bytes32("digest", &digest).map_err(text)?.into();
        Ok(Sitting { name: bot.parse().map_err(text)?, digest, files })
    });
    let seats = seats.collect::<Result<_, String>>()?;
    let seed = convert::seed("seed", &seed).map_err(text)?;
    Ok(Planned { number: MatchNumber(number), seed, params, seats })
}

#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
fn text(error: impl ToString) -> String {
    error.to_string()
}
