//! The matches that a worker must play, as coordinator and worker both use them.

use arbiter_games::{BotName, EntrantName, Game, Params, Seed};
use blake3::Hash;
use serde_json::{Map, Value, json};

use crate::convert::{InvalidField, bytes32, parse_field, seed};
use crate::ids::MatchNumber;
use crate::settings::Settings;
use crate::v1;

/// A seat of an assigned match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatAssignment {
    /// The name of the bot in matches.
    pub bot: BotName,
    /// The digest of the submitted bundle, which identifies the version.
    pub digest: Hash,
    /// The digest of the bundle that is run: the one its trial built, or the submitted one.
    pub program: Hash,
    /// Further files for its directory: a compressed tar archive, or empty.
    pub files: Vec<u8>,
}

impl SeatAssignment {
    /// A seat without files of the bot with this name in its tournament. If `program` is empty, the
    /// submitted bundle is run.
    ///
    /// # Errors
    /// If the name is not valid, or a digest does not have 32 bytes.
    pub fn new(bot: &str, digest: &[u8], program: &[u8]) -> Result<Self, InvalidField> {
        let hash = |field, bytes: &[u8]| bytes32(field, bytes).map(Hash::from);
        let digest = hash("digest", digest)?;
        let program = if program.is_empty() { digest } else { hash("program", program)? };
        let name: EntrantName = parse_field("bot", bot)?;
        Ok(Self { bot: name.in_matches().clone(), digest, program, files: Vec::new() })
    }
}

/// An assigned match. The wire carries only the parameters that differ from the tournament's;
/// [`MatchAssignment::complete`] adds the others.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchAssignment<P = Map<String, Value>> {
    /// Its number in its tournament.
    pub number: MatchNumber,
    /// Its seed.
    pub seed: Seed,
    /// Its parameters.
    pub params: P,
    /// Its seats, seat 1 first.
    pub seats: Vec<SeatAssignment>,
}

impl MatchAssignment {
    /// The match with all parameters: those of `settings`, replaced by its own.
    pub fn complete(
        self,
        game: &Game,
        settings: &Settings,
    ) -> Result<MatchAssignment<Params>, InvalidField> {
        let Self { number, seed, params: overrides, seats } = self;
        let mut params = settings.params.clone();
        params.extend(overrides);
        let params = Params::read(game, Value::Object(params)).map_err(json_error("params"))?;
        Ok(MatchAssignment { number, seed, params, seats })
    }
}

impl From<MatchAssignment> for v1::Match {
    fn from(assignment: MatchAssignment) -> Self {
        let MatchAssignment { number, seed, params, seats } = assignment;
        Self {
            number: number.0,
            seed: seed.0.to_vec(),
            seats: seats.into_iter().map(Into::into).collect(),
            params: if params.is_empty() { String::new() } else { json!(params).to_string() },
        }
    }
}

impl TryFrom<v1::Match> for MatchAssignment {
    type Error = InvalidField;

    fn try_from(message: v1::Match) -> Result<Self, InvalidField> {
        let params = match message.params.as_str() {
            "" => Map::new(),
            json => serde_json::from_str(json).map_err(json_error("params"))?,
        };
        Ok(Self {
            number: MatchNumber(message.number),
            seed: seed("seed", &message.seed)?,
            params,
            seats: message.seats.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

/// The message omits `program` if the submitted bundle is run.
impl From<SeatAssignment> for v1::Seat {
    fn from(SeatAssignment { bot, digest, program, files }: SeatAssignment) -> Self {
        let bytes = |hash: Hash| hash.as_bytes().to_vec();
        let is_same = program.as_bytes() == digest.as_bytes();
        let program = if is_same { Vec::new() } else { bytes(program) };
        Self { bot: bot.into(), digest: bytes(digest), files, program }
    }
}

impl TryFrom<v1::Seat> for SeatAssignment {
    type Error = InvalidField;

    fn try_from(v1::Seat { bot, digest, files, program }: v1::Seat) -> Result<Self, InvalidField> {
        Ok(Self { files, ..Self::new(&bot, &digest, &program)? })
    }
}

/// An error for a field with invalid JSON.
fn json_error(field: &'static str) -> impl Fn(serde_json::Error) -> InvalidField {
    move |error| InvalidField::Json { field, cause: error.to_string() }
}
