//! What a worker is told to play, as both sides of the wire know it.

use arbiter_games::{BotName, Game, Params, Seed};
use blake3::Hash;
use serde_json::{Map, Value, json};

use crate::convert::{Meaningless, bytes32, seed, word};
use crate::ids::MatchNumber;
use crate::settings::Settings;
use crate::v1;

/// A seat of a match that is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeatAssignment {
    /// The name of the bot.
    pub bot: BotName,
    /// The digest of what was submitted: what identifies it.
    pub digest: Hash,
    /// The digest of the bundle that is run: what its trial built, or the same.
    pub program: Hash,
    /// What its directory holds besides at the beginning: a compressed tar archive, or nothing.
    pub files: Vec<u8>,
}

impl SeatAssignment {
    /// A seat of a bot, without files; the bundle itself is run if `program` is empty.
    ///
    /// # Errors
    /// If the name is no bot's, or a digest has not 32 bytes.
    pub fn new(bot: &str, digest: &[u8], program: &[u8]) -> Result<Self, Meaningless> {
        let hash = |field, bytes: &[u8]| bytes32(field, bytes).map(Hash::from);
        let digest = hash("digest", digest)?;
        let program = if program.is_empty() { digest } else { hash("program", program)? };
        Ok(Self { bot: word("bot", bot)?, digest, program, files: Vec::new() })
    }
}

/// A match that is handed out: with the parameters that are its own, as it is sent, or with all of
/// them, as it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct MatchAssignment<P = Map<String, Value>> {
    /// Its number in its edition.
    pub number: MatchNumber,
    /// Its seed.
    pub seed: Seed,
    /// Its parameters.
    pub params: P,
    /// Who sits where, seat 1 first.
    pub seats: Vec<SeatAssignment>,
}

impl MatchAssignment {
    /// The same with all parameters: its own, and those of `settings` that they do not replace.
    pub fn complete(
        self,
        game: &Game,
        settings: &Settings,
    ) -> Result<MatchAssignment<Params>, Meaningless> {
        let Self { number, seed, params: own, seats } = self;
        let mut params = settings.params.clone();
        params.extend(own);
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
    type Error = Meaningless;

    fn try_from(message: v1::Match) -> Result<Self, Meaningless> {
        let own = match message.params.as_str() {
            "" => Map::new(),
            params => serde_json::from_str(params).map_err(json_error("params"))?,
        };
        Ok(Self {
            number: MatchNumber(message.number),
            seed: seed("seed", &message.seed)?,
            params: own,
            seats: message.seats.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

/// The program is left out of the message where the bundle itself is run.
impl From<SeatAssignment> for v1::Seat {
    fn from(SeatAssignment { bot, digest, program, files }: SeatAssignment) -> Self {
        let bytes = |hash: Hash| hash.as_bytes().to_vec();
        let is_same = program.as_bytes() == digest.as_bytes();
        let program = if is_same { Vec::new() } else { bytes(program) };
        Self { bot: bot.into(), digest: bytes(digest), files, program }
    }
}

impl TryFrom<v1::Seat> for SeatAssignment {
    type Error = Meaningless;

    fn try_from(v1::Seat { bot, digest, files, program }: v1::Seat) -> Result<Self, Meaningless> {
        Ok(Self { files, ..Self::new(&bot, &digest, &program)? })
    }
}

/// That a field cannot be read, for this reason.
fn json_error(field: &'static str) -> impl Fn(serde_json::Error) -> Meaningless {
    move |error| Meaningless::Json { field, why: error.to_string() }
}
